"""A pool: jobs held ready, and the slots that run them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from windlass.core.job import Claimed, Slices
from windlass.core.pool import PoolSpec
from windlass.core.task import Isolation, TaskSpec
from windlass.worker.acker import Acker
from windlass.worker.slot import SharedParts, Slot
from windlass.worker.worker_log import log

MOST_CLAIMED = 500
_MOST_AHEAD = 50
"""Times the prefetch setting: what jobs of next to no length are held ready at most. They last while a claim is on its way."""
_MOST_BYTES = 4 * 1024 * 1024
"""How much payload to hold ready, and to claim at a time."""
_REFILL = 0.75
"""Below which part of what is held ready to claim more: the rest lasts while the claim is on its way."""
_UNIT_S = 0.001
_LONGEST_AHEAD_S = 0.02
_LONGEST_TURN_S = 0.002
"""For how long runs that never wait may follow each other before the event loop gets its turn."""
_STALLED_S = 0.25
_TOGETHER_S = 0.001
_MOST_TOGETHER = 32
_REST_S = 1.0
_LOG_AGAIN_S = 30.0


class Pool:
    """Runs jobs of its lanes on its slots."""

    def __init__(
        self,
        spec: PoolSpec,
        shared: SharedParts,
        acker: Acker,
        *,
        wants_jobs: Callable[[], None],
        release: Callable[[Claimed], None],
        task_of: Callable[[str], TaskSpec | None] | None = None,
    ) -> None:
        """Call `wants_jobs` when there is room for more jobs, `release` for those that will not run here.

        `task_of` finds how a task runs here; by default as it is registered.
        """
        self.spec = spec
        self._shared = shared
        self._acker = acker
        self._wants_jobs = wants_jobs
        self._release = release
        self._task_of = task_of or shared.program.registry.get
        self._buffer: deque[Claimed] = deque()
        self._idle: deque[Slot] = deque()
        self._slots: set[Slot] = set()
        self._lost: list[Slot] = []
        self._resting: dict[Slot, float] = {}
        """Slots that the system had no thread or process for, and when each tries again."""
        self._shortage_logged_at: float | None = None
        # Until runs have shown that they are short, none waits behind another.
        self._run_s = 2 * _LONGEST_AHEAD_S
        self._ahead = 0
        """How many jobs to hold ready."""
        self._quick_s = shared.options.prefetch * spec.slots * _UNIT_S
        self._most_claimed = MOST_CLAIMED
        self._most_ahead = shared.options.prefetch * _MOST_AHEAD
        self._taken_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._is_held = False
        self._is_going_on = False
        self._is_closing = False
        self._done = asyncio.Event()

    def start(self) -> None:
        """Make the slots."""
        for _ in range(self.spec.slots):
            self._add_slot()
        self._wants_jobs()

    def _add_slot(self) -> None:
        slot = Slot(self._shared, freed=self._freed)
        self._slots.add(slot)
        self._idle.append(slot)

    @property
    def _may_start(self) -> bool:
        return not (self._is_closing or self._is_held) and self._acker.has_room

    def go_on(self) -> None:
        """Start what can be started now."""
        # A run that ends as soon as it starts comes back here before its start has returned.
        if not self._is_going_on:
            self._is_going_on = True
            try:
                self._fill_slots()
            finally:
                self._is_going_on = False
        if self._is_closing and self.is_idle:
            self._done.set()

    def _fill_slots(self) -> None:
        idle, monotonic = self._idle, self._shared.clock.monotonic
        until = monotonic() + _LONGEST_TURN_S
        while idle and self._buffer and self._may_start:
            slot, job = idle.popleft(), self._buffer.popleft()
            self._taken_at = now = monotonic()
            if len(self._buffer) <= self._ahead * _REFILL:
                self._wants_jobs()
            try:
                if not self._start(slot, job):
                    idle.append(slot)
            except Exception:
                # Not tried again at once, as it might fail for ever: `watch` revives the slot, and a job that is held without a
                # run is given back.
                log.exception("job %d could not be started", job.id, extra={"job_id": job.id})
            if now > until:
                self._loop.call_soon(self.go_on)
                return

    def _start(self, slot: Slot, job: Claimed) -> bool:
        """Start a job; False when it cannot run here, or when its lease may have ended by now."""
        task = self._task_of(job.task)
        if task is None or not self._shared.lease_times.may_start(job.token):
            self._release(job)
            return False
        if task.isolation is Isolation.THREAD:
            slot.start_in_thread(self._with_like(job), task)
        else:
            slot.start(job, task)
        return True

    def _freed(self, slot: Slot, run_s: float | None) -> None:
        if slot.shortage is not None and not slot.is_lost:
            self._rest(slot, slot.shortage)
            return
        if run_s is None:
            self._gather(slot)
        else:
            self._learn(run_s)
        if not slot.is_lost:
            self._idle.append(slot)
        self.go_on()
        if self._idle and not self._buffer:
            self._wants_jobs()

    def _rest(self, slot: Slot, shortage: str) -> None:
        """Give back the jobs of a slot that can start none now, and let it try again later; others may be able to."""
        for job in slot.recall():
            self._release(job)
        now = self._shared.clock.monotonic()
        self._resting[slot] = now + _REST_S
        if self._shortage_logged_at is None or now >= self._shortage_logged_at + _LOG_AGAIN_S:
            self._shortage_logged_at = now
            log.error("%s; jobs that need one are given back and tried again every %g s", shortage, _REST_S)
        self._wants_jobs()
        if self._is_closing and self.is_idle:
            self._done.set()

    def _with_like(self, job: Claimed) -> list[Claimed]:
        """Add the next jobs of the same task, as many as take no longer than the way to the thread and back."""
        together, buffer = [job], self._buffer
        # No slot takes more than its part.
        most = min(int(_TOGETHER_S / max(self._run_s, 1e-6)), len(buffer) // self.spec.slots, _MOST_TOGETHER)
        while len(together) < most and buffer and buffer[0].task == job.task:
            together.append(buffer.popleft())
        return together

    def _learn(self, run_s: float) -> None:
        """Follow the length of runs: at once when they get longer, slowly when they get shorter."""
        self._run_s = run_s if run_s > self._run_s else self._run_s + (run_s - self._run_s) * 0.1
        # What all slots together get through in the time that the last of them may wait; none when jobs are long, so that no
        # job waits behind another.
        fitting = self._quick_s / (self._run_s + 1e-6) if self._run_s <= _LONGEST_AHEAD_S else 0.0
        self._ahead = int(fitting) if fitting < self._most_ahead else self._most_ahead

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs here, but for handlers that were left behind."""
        return len(self._idle) + len(self._resting) == len(self._slots)

    @property
    def is_at_rest(self) -> bool:
        """Whether every slot waits for a job, and no job for a slot: there is nothing to watch."""
        return not self._buffer and len(self._idle) == len(self._slots)

    @property
    def is_busy(self) -> bool:
        """Whether more endings are about to come."""
        return bool(self._buffer) or not self.is_idle

    @property
    def busy_slots(self) -> list[Slot]:
        """The slots with a run going on; from any thread."""
        # A copy is one step of the interpreter.
        return [slot for slot in list(self._slots) if slot.active is not None]

    @property
    def waiting(self) -> list[Claimed]:
        """The jobs that are held here and have not started."""
        return [*self._buffer, *(job for slot in self._slots for job in slot.waiting)]

    @property
    def wants(self) -> int:
        """How many jobs to claim now."""
        if self._is_closing or self._is_held:
            return 0
        ahead = self._ahead
        missing = len(self._idle) + ahead - len(self._buffer)
        if missing <= 0 or (not self._idle and len(self._buffer) > ahead * _REFILL):
            return 0
        return min(missing, self._most_claimed)

    @property
    def idle_slots(self) -> int:
        """How many slots wait for a job."""
        return len(self._idle)

    def runs_at_once(self, jobs: int) -> bool:
        """Whether so many jobs start as soon as they come."""
        return jobs <= len(self._idle)

    def select(self, found: Slices, tasks: frozenset[str]) -> Slices:
        """Keep the slices this pool may claim from."""
        return found.select(lambda part: self.spec.may_take(part, tasks))

    def put(self, jobs: Sequence[Claimed]) -> None:
        """Take claimed jobs and start those there are slots for."""
        if self._is_closing or self._is_held:
            for job in jobs:
                self._release(job)
            return
        if not self._buffer:
            self._taken_at = self._shared.clock.monotonic()
        self._weigh(jobs)
        self._buffer.extend(jobs)
        self.go_on()

    def _weigh(self, jobs: Sequence[Claimed]) -> None:
        """Hold no more ready than fits into the memory there is for it, and claim no more at a time."""
        fitting = _MOST_BYTES * len(jobs) // (sum([len(job.payload) for job in jobs]) + 1)
        self._most_claimed = max(1, min(fitting, MOST_CLAIMED))
        self._most_ahead = min(fitting, self._shared.options.prefetch * _MOST_AHEAD)
        self._ahead = min(self._ahead, self._most_ahead)

    def _put_back(self, jobs: Sequence[Claimed]) -> None:
        """Take jobs again that were on their way to a thread, in their order."""
        if self._is_closing or self._is_held:
            for job in jobs:
                self._release(job)
        elif jobs:
            self._buffer.extendleft(reversed(jobs))

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
        self.go_on()

    def withdraw(self, job_id: int) -> Claimed | None:
        """Take out a job that waits here and is not to run."""
        self._recall()
        found = next((job for job in self._buffer if job.id == job_id), None)
        if found is not None:
            self._buffer.remove(found)
        self.go_on()
        return found

    def collect(self) -> None:
        """Report the runs that have come back from threads."""
        for slot in list(self._slots):
            slot.collect()

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
        """Give back jobs that wait behind long ones, put new slots in the place of lost ones, and restart ended ones."""
        self._recall()
        self._revive()
        if self._buffer and now - self._taken_at > _STALLED_S:
            self._learn(_STALLED_S)
            self.give_back()
        for slot in [slot for slot in self._slots if slot.is_lost]:
            self._slots.discard(slot)
            self._lost.append(slot)
            if not self._is_closing:
                self._add_slot()
        for slot in [slot for slot, until in self._resting.items() if now >= until]:
            del self._resting[slot]
            self._idle.append(slot)
            self._wants_jobs()
        self.go_on()

    def _revive(self) -> None:
        """Let slots go on that neither run a job nor wait for one, as an error has left them."""
        free = [slot for slot in self._slots if slot.is_free and not slot.is_lost]
        if len(free) == len(self._idle) + len(self._resting):
            return
        for slot in set(free).difference(self._idle, self._resting):
            log.error("a slot of pool %s stopped because of an error; it starts again", self.spec.lane)
            slot.clear()
            self._idle.append(slot)

    def hold(self) -> None:
        """Start nothing until `let_go`; what has not started goes back."""
        self._is_held = True
        self.give_back()

    def let_go(self) -> None:
        """Start jobs again."""
        self._is_held = False
        self._wants_jobs()

    @property
    def is_done(self) -> bool:
        """Whether the pool is closed and nothing runs here any more, but for handlers that were left behind."""
        return self._is_closing and self.is_idle

    async def done(self, timeout: float) -> None:  # noqa: ASYNC109 - a look at what is there, not a deadline
        """Wait until nothing runs here, but not longer than `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._done.wait()
        except TimeoutError:
            return

    @property
    def lost(self) -> int:
        """How many handlers that would not stop are still running."""
        self._lost = [slot for slot in self._lost if not slot.is_free]
        return len(self._lost)

    def close(self) -> None:
        """Start nothing more and give back what has not started."""
        self._is_closing = True
        self.give_back()

    async def release_slots(self) -> None:
        """End the slots' threads and children."""
        await asyncio.gather(*(slot.close() for slot in self._slots))
