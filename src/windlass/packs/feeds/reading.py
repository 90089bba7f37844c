"""Reads documents in processes of their own: for some a parser takes hours, and no thread can be ended."""

from __future__ import annotations

import asyncio
import atexit
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import IO, Any, NamedTuple, cast

from windlass.packs.feeds.document import FeedDocument, FeedUnreadable

_LIMIT_S = 10.0
_START_S = 60.0
_IDLE_S = 60.0
_END_S = 1.0
_READERS = 2
_IDLED_OUT = 0
_open: set[_ReadingProcess] = set()
_mine = threading.local()


class _Asked(NamedTuple):
    body: bytes
    url: str
    content_type: str | None


class _ReaderGone(Exception):
    """The process has ended, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"its reader ended with {code}")
        self.code = code


async def read_feed(body: bytes, url: str, content_type: str | None = None) -> FeedDocument:
    """Read a document that came from `url`; raises FeedUnreadable, also when it takes too long."""
    asked = _Asked(body, url, content_type)
    return await asyncio.get_running_loop().run_in_executor(_threads(), _read, asked)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return our own threads, so that no other work waits for a slow document; each has a reader."""
    return ThreadPoolExecutor(_READERS, thread_name_prefix="windlass-feeds")


def _read(asked: _Asked) -> FeedDocument:
    try:
        found = _ask(asked)
    except (_ReaderGone, OSError) as error:
        raise FeedUnreadable(f"cannot be read: {error}") from error
    if isinstance(found, str):
        raise FeedUnreadable(found)
    return found


def _ask(asked: _Asked) -> FeedDocument | str:
    try:
        return _reader().read(asked)
    except _ReaderGone as gone:
        if gone.code != _IDLED_OUT:
            raise
        # It was idle for so long that it ended, just before this request.
        return _reader().read(asked)


def _reader() -> _ReadingProcess:
    reader: _ReadingProcess | None = getattr(_mine, "reader", None)
    if reader is not None and reader.is_running():
        return reader
    if reader is not None:
        reader.close()
    _mine.reader = reader = _ReadingProcess()
    return reader


class _ReadingProcess:
    """A process that reads one document at a time, and does not outlive its limit."""

    def __init__(self) -> None:
        """Start it and wait until it listens."""
        # A session of its own: what a terminal sends to the worker is not for it.
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "windlass.packs.feeds.reader", str(_IDLE_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        # Both are there: we have asked for pipes.
        self._sink, self._source = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        _open.add(self)
        self._exchange(None, _START_S)

    def is_running(self) -> bool:
        """Whether it may still be asked."""
        return self._process.poll() is None

    def read(self, asked: _Asked) -> FeedDocument | str:
        """Read a document, or raise what is wrong with it."""
        found: FeedDocument | str = self._exchange(asked, _LIMIT_S)
        return found

    def _exchange(self, asked: _Asked | None, limit_s: float) -> Any:
        """Send something and read the answer; raises FeedUnreadable after the limit."""
        timer = threading.Timer(limit_s, self._process.kill)
        began = monotonic()
        timer.start()
        try:
            return self._talk(asked)
        except (EOFError, OSError, pickle.UnpicklingError):
            code = self.close()
            if monotonic() - began >= limit_s:
                raise FeedUnreadable(f"takes longer than {limit_s:g} s to read") from None
            raise _ReaderGone(code) from None
        finally:
            timer.cancel()
            # Else it could still end the process, over the next document.
            timer.join()

    def _talk(self, asked: _Asked | None) -> Any:
        if asked is not None:
            pickle.dump(asked, self._sink)
            self._sink.flush()
        return pickle.load(self._source)  # noqa: S301 - our own process has written it

    def close(self) -> int:
        """End it, and return how it has ended."""
        _open.discard(self)
        for pipe in (self._sink, self._source):
            with suppress(OSError):
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_S)
        self._process.kill()
        return self._process.wait()


@atexit.register
def _close_all() -> None:
    for reader in [*_open]:
        reader.close()
