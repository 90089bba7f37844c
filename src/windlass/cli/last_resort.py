"""Ends a command that was asked to stop and does not: a statement, a handler or a thread may hang for ever."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import timedelta

from windlass.cli.deadline import Deadline
from windlass.cli.exit_codes import HUNG

log = logging.getLogger("windlass.cli")

_LOG_S = 0.3


class LastResort:
    """A thread that waits for signals from the start on and ends the process when the time is over.

    It needs neither the event loop nor the database nor a lock that a hanging thread may hold.
    """

    def __init__(self, grace: timedelta) -> None:
        """Wait for the first signal; to be made by the event loop's thread."""
        self._deadline = Deadline(grace)
        self._loop = asyncio.get_running_loop()
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._main, name="windlass-last-resort", daemon=True).start()

    def note_signal(self, *_: object) -> None:
        """Wake the thread; fit for a signal handler, which may interrupt any code, itself included."""
        os.write(self._writer, b"!")

    def _main(self) -> None:
        while True:
            at = self._deadline.at
            left_s = None if at is None else max(0.0, at - time.monotonic())
            if not select.select([self._reader], [], [], left_s)[0]:
                break
            for _ in os.read(self._reader, 16):
                self._deadline.note_signal(time.monotonic())
        # Beside us: the log's own lock may be what hangs.
        telling = threading.Thread(target=self._log, name="windlass-last-words", daemon=True)
        telling.start()
        telling.join(_LOG_S)
        os._exit(HUNG)

    def _log(self) -> None:
        log.critical(
            "the end took too long and was cut short; leases that are left run out. Still waiting: %s", "; ".join(self._waiting())
        )
        sys.stderr.flush()

    def _waiting(self) -> Iterator[str]:
        frames = sys._current_frames()  # noqa: SLF001 - there is no other way to see what another thread does
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is not None and not thread.name.startswith("windlass-last"):
                place = traceback.extract_stack(frame, limit=1)[-1]
                yield f"thread {thread.name} in {place.name} ({place.filename}:{place.lineno})"
        for task in asyncio.all_tasks(self._loop):
            yield f"task {task.get_name()} in {getattr(task.get_coro(), '__qualname__', '?')}"
