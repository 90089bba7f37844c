"""Notices a handler that blocks the event loop, which no code on that loop can do."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from windlass.core.current import RunningJob, current_run
from windlass.telemetry import STACK_TRACE
from windlass.worker.failure import stack_of
from windlass.worker.run import ActiveRun
from windlass.worker.worker_log import log

_LOOK_S = 0.25
_BLOCKED_S = 1.0


class LoopWatch:
    """A thread that logs a blocked loop once with the job and its stack, and replaces the process when the job is overdue.

    It sleeps while there is nothing to watch.
    A handler that holds the interpreter itself stops this thread too; then the leases run out, and other processes act.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        running: Callable[[asyncio.Task[Any]], ActiveRun | None],
        overdue: Callable[[ActiveRun], None],
        grace_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        """Watch `loop`, from its own thread; `running` returns the run of a task.

        `overdue` is called once, on the watching thread, for a run that blocks the loop `grace_s` seconds after its timeout.
        """
        self._loop = loop
        self._running = running
        self._overdue = overdue
        self._grace_s = grace_s
        self._monotonic = monotonic
        self._loop_thread = threading.get_ident()
        self._ticked_at = monotonic()
        self._is_blocked = False
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="windlass-loop-watch", daemon=True)
        self.blocks = 0
        """How many times the loop was found blocked."""

    def start(self) -> None:
        """Begin to watch once there is a tick."""
        self._thread.start()

    def tick(self) -> None:
        """Note that the loop runs; from the loop, several times a second until `rest`."""
        self._ticked_at = self._monotonic()
        if not self._wanted.is_set():
            self._wanted.set()

    def rest(self) -> None:
        """Stop watching until the next tick."""
        self._wanted.clear()

    def close(self) -> None:
        """Stop watching for good."""
        self._closing.set()
        self._wanted.set()

    def _watch(self) -> None:
        looked_at = self._monotonic()
        while not self._closing.wait(_LOOK_S):
            if not self._wanted.is_set():
                self._wanted.wait()
                looked_at = self._monotonic()
                continue
            now = self._monotonic()
            # Had this thread stood still as well, the whole process did, and no handler is to blame for it.
            stood_still = now - looked_at > _BLOCKED_S
            looked_at = now
            if now - self._ticked_at < _BLOCKED_S:
                self._is_blocked = False
            elif not stood_still and self._has_replaced(now):
                return

    def _has_replaced(self, now: float) -> bool:
        try:
            return self._look(now)
        except Exception:
            # A thread that ends here would leave a process that nothing replaces.
            log.exception("a blocked event loop could not be looked at; it is looked at again")
            return False

    def _look(self, now: float) -> bool:
        """Log a block at its beginning; returns whether the process is to be replaced."""
        task = asyncio.current_task(self._loop)
        active = None if task is None else self._running(task)
        if not self._is_blocked:
            self._is_blocked = True
            self.blocks += 1
            copy_context().run(self._log, active)
        if active is None or now < active.deadline + self._grace_s:
            return False
        self._overdue(active)
        return True

    def _log(self, active: ActiveRun | None) -> None:
        if active is not None:
            current_run.set(RunningJob(active.job))
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - there is no other way to see another thread's code
        stack = None if frame is None else stack_of(frame)
        log.error(
            "the event loop has been blocked for %.0f s%s: other jobs of this process wait; use `await`, or a plain function, "
            "which runs in a thread",
            _BLOCKED_S,
            "" if active is None else f" by task {active.job.task!r}",
            extra={STACK_TRACE: stack},
        )
