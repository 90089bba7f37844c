"""The process that reads documents, so that one that takes too long can be ended; it does what `reading` sends."""

from __future__ import annotations

import pickle
import select
import signal
import sys

from windlass.packs.feeds.document import FeedDocument, FeedUnreadable, read_document

# For a reader whose worker was killed and can no longer end it.
_ALARM_S = 30


def main(idle_s: float) -> None:
    """Read one document after the other, until nothing comes for a while or the worker is gone."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # What a parser prints must not get between the answers.
    sys.stdout = sys.stderr
    pickle.dump(None, sink)
    sink.flush()
    while select.select([source], [], [], idle_s)[0]:
        try:
            body, url, content_type = pickle.load(source)  # noqa: S301 - the process that started us has written it
        except EOFError:
            return
        signal.alarm(_ALARM_S)
        found = _read(body, url, content_type)
        signal.alarm(0)
        pickle.dump(found, sink)
        sink.flush()


def _read(body: bytes, url: str, content_type: str | None) -> FeedDocument | str:
    try:
        return read_document(body, url, content_type)
    except FeedUnreadable as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - it is the document's fault, whatever it is
        return f"cannot be read: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main(float(sys.argv[1]))
