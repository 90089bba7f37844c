"""Runs jobs of `process` isolation: one warm child process for each slot, replaced when it dies or grows."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from math import inf
from typing import Any

from windlass.clock import steady
from windlass.core.job import Claimed
from windlass.errors import WindlassError
from windlass.worker.child_process import ChildProcess, Death
from windlass.worker.lease_times import Late
from windlass.worker.memory import MemoryWatch
from windlass.worker.wire import ChildEnd, Cost, Crashed, describe_death, pack_job, pack_refusal, unpack_end

Handle = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Serves what a handler asks for: takes the verb and its arguments, returns a JSON value or raises."""

_watch = MemoryWatch()


class ChildNotStarted(WindlassError):
    """No child could be had, so the job was not run; carries the child's own traceback when there is one."""


class NoProcess(ChildNotStarted):
    """The system starts no process now: it lacks memory, process numbers or file descriptors, which is no job's fault."""


class ChildRunner:
    """The child of one slot, started when it is first needed and kept for the next job.

    It is replaced when it has died, has run `max_jobs`, or still holds `retained_mb` more after a job than when it was
    fresh. A job's own subprocesses end with the child at the latest. All but `kill_now` belong to the event loop's thread.
    """

    def __init__(
        self,
        target: str,
        *,
        start_timeout: timedelta = timedelta(seconds=30),
        close_timeout: timedelta = timedelta(seconds=5),
        max_jobs: int = 1000,
        retained_mb: int = 256,
    ) -> None:
        """Run the tasks of `target`, written `module:attribute`."""
        self._target = target
        self._start_timeout_s = start_timeout.total_seconds()
        self._close_timeout_s = close_timeout.total_seconds()
        self._max_jobs = max_jobs
        self._retained_mb = retained_mb
        self._child: ChildProcess | None = None
        self._retired: set[ChildProcess] = set()
        self._is_running = False
        self._is_sent = False
        self._stop: bool | None = None
        self.number = 0
        """Which run is under way, or was the last; see `kill_now`."""

    @property
    def pid(self) -> int | None:
        """The process at work or waiting for it."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Have a child ready, so that the next job need not wait for one; raises ChildNotStarted, or its kind NoProcess."""
        await self._get_child(None)

    async def run(
        self,
        job: Claimed,
        *,
        handle: Handle,
        memory_limit_mb: int | None = None,
        left_to_start: Callable[[], float] = lambda: inf,
    ) -> ChildEnd:
        """Run a job in the child and return how it ended; one at a time.

        The limit counts what the job takes on top of what the child held before its first. Raises ChildNotStarted when
        there is no child to run the job, and Late when the seconds `left_to_start` were over before the child could begin.
        Cancelling the caller kills the child.
        """
        if self._is_running:
            raise RuntimeError("a child runs one job at a time")
        self._is_running = True
        # Counted before the child is looked at, so that `kill_now` of the last run can no longer hit this one.
        self.number += 1
        try:
            child = await self._get_child(memory_limit_mb)
            return await self._run(
                child, ["run", self.number, pack_job(job), steady() + left_to_start()], handle, memory_limit_mb
            )
        finally:
            self._is_running = self._is_sent = False
            self._stop = None

    def stop(self, *, cancel: bool = True) -> None:
        """Ask the running handler to end: `ctx.cancelled` becomes true, and a coroutine is cancelled if `cancel`."""
        if self._is_running:
            self._stop = cancel
            self._send_stop()

    def kill_now(self, number: int | None = None) -> None:
        """Do what `kill` does, from any thread and without waiting; with a run's number, only while that run lasts."""
        if (child := self._child) is None:
            return
        # First, so that the next run leaves this child alone, whatever we find.
        child.is_killed = True
        if number is None or number == self.number:
            child.kill_now()

    async def kill(self) -> None:
        """Kill the child and all its descendants, and wait until they are gone; a running job ends as Crashed."""
        if (child := self._child) is not None:
            child.kill_now()
            await child.gone.wait()

    async def close(self) -> None:
        """Let the child leave its lifespan and end; kill it when that takes too long."""
        if self._child is not None:
            self._retire(self._child)
        for child in tuple(self._retired):
            await child.gone.wait()

    async def _get_child(self, memory_limit_mb: int | None) -> ChildProcess:
        child = self._child
        if child is not None and self._is_fit(child, memory_limit_mb):
            return child
        if child is not None:
            self._retire(child)
        return await self._start()

    def _is_fit(self, child: ChildProcess, memory_limit_mb: int | None) -> bool:
        if child.gone.is_set() or child.is_killed or child.is_cut or child.jobs >= self._max_jobs:
            return False
        # What earlier jobs left behind must not be charged to one with a limit.
        most_mb = self._retained_mb if memory_limit_mb is None else min(self._retained_mb, memory_limit_mb // 2)
        return child.cost.resident_mb - child.base_mb <= most_mb

    def _retire(self, child: ChildProcess) -> None:
        self._child = None
        self._retired = {each for each in (*self._retired, child) if not each.gone.is_set()}
        child.retire(self._close_timeout_s)

    async def _start(self) -> ChildProcess:
        try:
            self._child = child = ChildProcess(self._target, asyncio.get_running_loop())
        except OSError as error:
            raise NoProcess(f"no child process for {self._target} can be started: {error}") from error
        try:
            async with asyncio.timeout(self._start_timeout_s):
                message = await child.hear()
        except TimeoutError:
            await self.kill()
            raise ChildNotStarted(f"the child process for {self._target} was not ready in {self._start_timeout_s:g} s") from None
        except BaseException:
            child.kill_now()
            raise
        if not (isinstance(message, list) and message[0] == "ready"):
            await self.kill()
            if isinstance(message, Death) and message.status == -signal.SIGKILL:
                # By the system or by hand, and never by the program itself: no job can be blamed that has not begun.
                raise NoProcess(f"no child process for {self._target} can be started: it was killed")
            raise ChildNotStarted(f"the child process for {self._target} could not start: {_reason(message)}")
        child.cost = Cost(*message[1])
        child.base_mb = child.cost.resident_mb
        return child

    async def _run(self, child: ChildProcess, order: list[Any], handle: Handle, memory_limit_mb: int | None) -> ChildEnd:
        child.jobs += 1
        if memory_limit_mb is not None:
            _watch.add(child.pid, child.base_mb + memory_limit_mb, child.exceed)
        try:
            child.send(order)
            self._is_sent = True
            self._send_stop()
            return await self._converse(child, handle, memory_limit_mb)
        except Late:
            raise
        except BaseException:
            # This run is not waited for any more, be it that we were cancelled.
            child.kill_now()
            raise
        finally:
            if memory_limit_mb is not None:
                _watch.remove(child.pid)

    async def _converse(self, child: ChildProcess, handle: Handle, memory_limit_mb: int | None) -> ChildEnd:
        """Answer the child's calls until it reports the end of the run, or dies."""
        while True:
            match message := await child.hear():
                case ["end", _, packed]:
                    end, child.cost = unpack_end(packed)
                    return end
                case ["call", number, verb, arguments]:
                    child.answer(number, *await _ask(handle, verb, arguments))
                case ["late", _]:
                    raise Late
                case Death():
                    return _crashed(child, message, memory_limit_mb)

    def _send_stop(self) -> None:
        if self._child is not None and self._is_sent and self._stop is not None:
            self._child.send(["stop", self.number, self._stop])


async def _ask(handle: Handle, verb: str, arguments: Mapping[str, Any]) -> tuple[Any, list[Any] | None]:
    """Return the answer or the refusal."""
    try:
        return await handle(verb, arguments), None
    except Exception as error:  # noqa: BLE001 - it belongs to the handler that asked
        return None, pack_refusal(error)


def _reason(message: Any) -> str:
    match message:
        case ["failed", text]:
            return f"\n{text}"
        case Death(status):
            return describe_death(status).text
    return f"it sent {message!r}"


def _crashed(child: ChildProcess, death: Death, memory_limit_mb: int | None) -> ChildEnd:
    total = death.cpu_total_ms
    cpu_time_ms = None if total is None else max(0, total - child.cost.cpu_total_ms)
    if child.over_mb is not None:
        text = f"the job took more memory than its limit: {child.over_mb - child.base_mb} MB, allowed are {memory_limit_mb} MB"
        crash = Crashed(text, signal=signal.SIGKILL, is_memory=True)
    elif child.is_killed:
        crash = Crashed("the child process was killed by its worker", signal=signal.SIGKILL, is_killed=True)
    elif child.broken is not None and death.status == -signal.SIGKILL:
        crash = Crashed(f"the child process cut its connection to the worker: {child.broken}", signal=signal.SIGKILL)
    else:
        crash = describe_death(death.status)
    return ChildEnd(crash, cpu_time_ms=cpu_time_ms, memory_peak_mb=child.over_mb)
