"""Calls an application's hooks for runs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

from windlass.core.current import CurrentJob
from windlass.core.hooks import EndEvent, Happening, Hooks, StartEvent
from windlass.core.job import JobState, RunStatus
from windlass.core.outcome import Ending
from windlass.errors import rebuilt
from windlass.worker.run import ActiveRun
from windlass.worker.worker_log import log


class HookCalls:
    """Calls hooks; what they raise is logged and stops nothing."""

    def __init__(self, hooks: Hooks) -> None:
        """Call these hooks."""
        self._hooks = hooks
        self._active_runs: dict[tuple[int, int], ActiveRun] = {}
        self._calls: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.hears_anything = any(map(hooks.of, Happening))
        self.hears_ends = bool(hooks.of(Happening.FINISH) or hooks.of(Happening.FAIL))

    def started(self, active: ActiveRun) -> None:
        """Call the hooks for a run that starts; from any thread."""
        if self.hears_ends:
            self._active_runs[active.job.id, active.job.token] = active
        if self._hooks.of(Happening.START):
            job = active.job
            correlation_id = CurrentJob.of(job).correlation_id
            event = StartEvent(job.id, job.task, job.lane, job.attempt, correlation_id, job.worker)
            if threading.get_ident() == self._thread:
                self._call(Happening.START, event)
            else:
                # Hooks run on the event loop, wherever the handler does.
                self._loop.call_soon_threadsafe(self._call, Happening.START, event)

    def forget(self, active: ActiveRun) -> None:
        """Drop a run whose end no hook gets."""
        self._active_runs.pop((active.job.id, active.job.token), None)

    def ended(self, end: Ending, state: JobState | None) -> None:
        """Call the hooks for a run whose end the store has accepted; without a state it has not, and no hook is called."""
        active = self._active_runs.pop((end.id, end.token), None)
        ending = end.decided()
        if active is None or state is None or ending.status not in {RunStatus.COMPLETED, RunStatus.FAILED}:
            return
        job, run = active.job, ending.run
        spent = (run.finished_at or active.started_at) - active.started_at
        failure = ending.failure
        event = EndEvent(
            job_id=job.id,
            task=job.task,
            lane=job.lane,
            attempt=job.attempt,
            correlation_id=CurrentJob.of(job).correlation_id,
            worker=job.worker,
            state=state,
            error=failure and failure.message,
            duration=spent,
            traceback=failure and failure.trace,
            # A child process sends text.
            exception=active.error or (failure and rebuilt(failure.message, failure.trace)),
        )
        self._call(Happening.FINISH if ending.status is RunStatus.COMPLETED else Happening.FAIL, event)

    def _call(self, happening: Happening, event: Any) -> None:
        for hook in self._hooks.of(happening):
            try:
                answer = hook(event)
            except Exception:
                log.exception("a %s hook failed for job %d", happening, event.job_id)
                continue
            if inspect.iscoroutine(answer):
                task = asyncio.create_task(self._wait_for(answer, happening, event.job_id))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    async def _wait_for(self, answer: Any, happening: Happening, job_id: int) -> None:
        try:
            await answer
        except Exception:
            log.exception("a %s hook failed for job %d", happening, job_id)

    async def settle(self) -> None:
        """Wait for hooks that are still at work."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=1.0)
