"""A pool: jobs held ready, and the slots that run them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from windlass.core.job import Claimed, Slices
from windlass.core.pool import PoolSpec
from windlass.core.task import Isolation
from windlass.worker.acker import Acker
from windlass.worker.slot import Kit, Slot

log = logging.getLogger("windlass.worker")

MOST_CLAIMED = 200
_MOST_AHEAD = 20
"""Times the prefetch setting: what jobs of next to no length are held ready at most."""
_UNIT_S = 0.001
_LONGEST_AHEAD_S = 0.02
_MOST_BUSY_S = 0.002
_STALLED_S = 0.25
_TOGETHER_S = 0.001
_MOST_TOGETHER = 32


class Pool:
    """Runs jobs of its lanes on its slots."""

    def __init__(
        self, spec: PoolSpec, kit: Kit, acker: Acker, *, hungry: Callable[[], None], release: Callable[[Claimed], None]
    ) -> None:
        """Call `hungry` when there is room for more jobs, `release` for those that will not run here."""
        self.spec = spec
        self._kit = kit
        self._acker = acker
        self._hungry = hungry
        self._release = release
        self._buffer: deque[Claimed] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._slots: dict[Slot, asyncio.Task[None]] = {}
        self._lost: list[asyncio.Task[None]] = []
        # Until runs have shown that they are short, none waits behind another.
        self._run_s = 2 * _LONGEST_AHEAD_S
        self._ahead = 0
        """How many jobs to hold ready."""
        self._quick_s = kit.options.prefetch * spec.slots * _UNIT_S
        self._most_ahead = kit.options.prefetch * _MOST_AHEAD
        self._taken_at = 0.0
        self._is_closing = False

    def start(self) -> None:
        """Make the slots."""
        for _ in range(self.spec.slots):
            self._add_slot()

    def _add_slot(self) -> None:
        slot = Slot(self._kit)
        # Not in a TaskGroup: that would wait for a handler that will not stop, and nothing may.
        self._slots[slot] = asyncio.create_task(self._serve(slot), name=f"windlass-slot-{self.spec.lane}")

    async def _serve(self, slot: Slot) -> None:
        """Run one job after another; nothing is made for a single one."""
        monotonic = self._kit.clock.monotonic
        yielded = monotonic()
        try:
            while not slot.is_lost and (job := await self._take()) is not None:
                started = monotonic()
                try:
                    await self._run(slot, job, started)
                except Exception:
                    log.exception("job %d of %s: its end could not be handled; its lease will run out", job.id, job.task)
                # A handler that never waits would keep the loop from everything else.
                if monotonic() - yielded > _MOST_BUSY_S:
                    await asyncio.sleep(0)
                    yielded = monotonic()
        finally:
            await slot.close()
            self._slots.pop(slot, None)

    async def _run(self, slot: Slot, job: Claimed, started: float) -> None:
        spec = self._kit.program.registry.get(job.task)
        if spec is None:
            self._release(job)
        elif spec.isolation is Isolation.THREAD:
            try:
                await slot.run_in_thread(self._with_like(job), spec)
            finally:
                self._gather(slot)
        else:
            await slot.run(job, spec)
            self._learn(self._kit.clock.monotonic() - started)

    def _with_like(self, job: Claimed) -> list[Claimed]:
        """Add the next jobs of the same task, as many as take no longer than the way to the thread and back."""
        together, buffer = [job], self._buffer
        # No slot takes more than its part.
        most = min(int(_TOGETHER_S / max(self._run_s, 1e-6)), len(buffer) // self.spec.slots, _MOST_TOGETHER)
        while len(together) < most and buffer and buffer[0].task == job.task:
            together.append(buffer.popleft())
        return together

    async def _take(self) -> Claimed | None:
        """Wait for a job; None when the pool is closed."""
        while True:
            if not self._acker.has_room:
                await self._acker.room()
            if self._buffer and not self._is_closing:
                job = self._buffer.popleft()
                self._taken_at = self._kit.clock.monotonic()
                if len(self._buffer) <= self._ahead // 2:
                    self._hungry()
                return job
            if self._is_closing:
                return None
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            self._hungry()
            await waiter

    def _learn(self, run_s: float) -> None:
        """Follow the length of runs: at once when they get longer, slowly when they get shorter."""
        self._run_s = run_s if run_s > self._run_s else self._run_s + (run_s - self._run_s) * 0.1
        # What all slots together get through in the time that the last of them may wait; none when jobs are long, so that no
        # job waits behind another.
        fitting = self._quick_s / (self._run_s + 1e-6) if self._run_s <= _LONGEST_AHEAD_S else 0.0
        self._ahead = int(fitting) if fitting < self._most_ahead else self._most_ahead

    @property
    def is_busy(self) -> bool:
        """Whether more endings are about to come."""
        return bool(self._buffer) or len(self._idle) < len(self._slots)

    @property
    def flying(self) -> list[Slot]:
        """The slots with a run going on."""
        return [slot for slot in self._slots if slot.flight is not None]

    @property
    def wants(self) -> int:
        """How many jobs to claim now."""
        if self._is_closing:
            return 0
        ahead = self._ahead
        missing = len(self._idle) + ahead - len(self._buffer)
        if missing <= 0 or (not self._idle and len(self._buffer) > ahead // 2):
            return 0
        return min(missing, MOST_CLAIMED)

    def runs_at_once(self, jobs: int) -> bool:
        """Whether so many jobs start as soon as they come."""
        return jobs <= len(self._idle)

    def select(self, found: Slices, tasks: frozenset[str]) -> Slices:
        """Keep the slices this pool may claim from."""
        return Slices(found.version, tuple(part for part in found.open if self.spec.may_take(part, tasks)))

    def put(self, jobs: Sequence[Claimed]) -> None:
        """Take claimed jobs and wake slots for them."""
        if self._is_closing:
            for job in jobs:
                self._release(job)
            return
        if not self._buffer:
            self._taken_at = self._kit.clock.monotonic()
        self._buffer.extend(jobs)
        self._wake(len(jobs))

    def _put_back(self, jobs: Sequence[Claimed]) -> None:
        """Take jobs again that were on their way to a thread, in their order."""
        if self._is_closing:
            for job in jobs:
                self._release(job)
        elif jobs:
            self._buffer.extendleft(reversed(jobs))
            self._wake(len(jobs))

    def _wake(self, slots: int) -> None:
        for _ in range(min(slots, len(self._idle))):
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def give_back(self, of: Callable[[Claimed], bool] = lambda _: True) -> None:
        """Release the jobs that have not started."""
        self._recall()
        kept: deque[Claimed] = deque()
        for job in self._buffer:
            if of(job):
                self._release(job)
            else:
                kept.append(job)
        self._buffer = kept

    def withdraw(self, job_id: int) -> Claimed | None:
        """Take out a job that waits here and is not to run."""
        self._recall()
        for job in self._buffer:
            if job.id == job_id:
                self._buffer.remove(job)
                return job
        return None

    def _recall(self) -> None:
        """Take back what was given to threads and has not started."""
        for slot in self._slots:
            self._gather(slot)

    def _gather(self, slot: Slot) -> None:
        """Report what a slot's thread has done, and take back what it has not begun."""
        for run_s in slot.collect():
            self._learn(run_s)
        self._put_back(slot.recall())

    def watch(self, now: float) -> None:
        """Give back jobs that wait behind long ones, and put new slots in the place of lost ones."""
        self._recall()
        if self._buffer and now - self._taken_at > _STALLED_S:
            self._learn(_STALLED_S)
            self.give_back()
        for slot in [slot for slot in self._slots if slot.is_lost]:
            self._lost.append(self._slots.pop(slot))
            if not self._is_closing:
                self._add_slot()

    @property
    def is_done(self) -> bool:
        """Whether nothing runs here any more, but for handlers that were left behind."""
        return not self._slots

    async def done(self, timeout: float) -> None:  # noqa: ASYNC109 - a look at what is there, not a deadline
        """Wait until nothing runs here, but not longer than `timeout` seconds."""
        if self._slots:
            await asyncio.wait(self._slots.values(), timeout=timeout)

    @property
    def lost(self) -> int:
        """How many handlers that would not stop are still running."""
        self._lost = [task for task in self._lost if not task.done()]
        return len(self._lost)

    def close(self) -> None:
        """Start nothing more and give back what has not started."""
        self._is_closing = True
        self.give_back()
        self._wake(len(self._idle))
