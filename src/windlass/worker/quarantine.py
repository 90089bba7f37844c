"""Runs the jobs that may have killed a worker apart from all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from windlass.core.job import Claimed, Slices
from windlass.core.pool import PoolSpec
from windlass.core.task import Isolation, TaskSpec
from windlass.worker.acker import Acker
from windlass.worker.pool import Pool
from windlass.worker.slot import SharedParts

_LANE = "quarantine"
_REST = 4.0
"""How many times as long as a suspect held up the process the other jobs have it to themselves afterwards."""
_BETWEEN_S = 0.025
"""The least time between the starts of two suspects while there is other work: each costs as much as many plain jobs."""
_CLAIM_REST = 9.0
"""The same in multiples of the time that the claim of the first took, since no other claim is made meanwhile; counts once many
suspects have gone before."""
_AT_FIRST = 200
"""How many suspects of a row go before their claims count: what a lost worker held is to run again soon."""
_CHILDREN = 4
"""How many suspects run at once, each in a child process of its own: a lost worker leaves as many as it had slots."""


class Quarantine:
    """Runs each suspect in a child process where there can be one, else alone, with nothing starting beside it.

    A process that must run them alone first waits for a moment when nothing runs. When none comes, it starts nothing more until
    what runs has ended; when that takes too long, the others go on and the next attempt is more patient.
    """

    def __init__(
        self,
        shared: SharedParts,
        acker: Acker,
        others: Sequence[Pool],
        *,
        wants_jobs: Callable[[], None],
        release: Callable[[Claimed], None],
    ) -> None:
        """Serve the lanes of `others`, which may still be filled; `wants_jobs` is called when another suspect may be claimed."""
        self._shared = shared
        self._others = others
        self._wants_jobs = wants_jobs
        self._is_alone = shared.program.target is None
        self._patience_s = shared.options.lease.total_seconds()
        self._wanted_at: float | None = None
        """Since when a suspect has waited for the process."""
        self._held_at: float | None = None
        """Since when nothing else may start."""
        self._rest_until = 0.0
        self._in_a_row = 0
        self._is_used = False
        slots = 1 if self._is_alone else min(_CHILDREN, sum(pool.slots for pool in shared.options.pools))
        self.pool = Pool(PoolSpec(_LANE, slots), shared, acker, wants_jobs=self._look, release=release, task_of=self._task_of)

    def _task_of(self, name: str) -> TaskSpec | None:
        task = self._shared.program.registry.get(name)
        return task if task is None or self._is_alone else replace(task, isolation=Isolation.PROCESS)

    @property
    def is_free(self) -> bool:
        """Whether a suspect could be taken, and would start at once."""
        return self.pool.wants > 0 and self.pool.runs_at_once(1) and self._shared.clock.monotonic() >= self._rest_until

    def select(self, found: Slices, tasks: frozenset[str]) -> Slices:
        """Keep the suspects that this process serves the lanes of."""
        return found.select(lambda part: any(pool.spec.may_take(part, tasks) for pool in self._others))

    def make_room(self) -> int:
        """Return how many suspects may be claimed now; where one must run alone, this may hold up other jobs until it can."""
        if not self.is_free:
            return 0
        if self._is_alone:
            return 1 if self._is_quiet() else 0
        # One at a time once there are many: the next rests are counted by how long their claims take.
        return self.pool.idle_slots if self._in_a_row < _AT_FIRST else 1

    def _is_quiet(self) -> bool:
        now = self._shared.clock.monotonic()
        if self._wanted_at is None:
            self._wanted_at = now
        if not any(pool.is_busy for pool in self._others):
            self._hold(now)
            return True
        if self._held_at is None:
            if now >= self._wanted_at + self._patience_s:
                self._hold(now)
        elif now >= self._held_at + self._patience_s:
            self._patience_s *= 2
            self.let_go()
        return False

    def put(self, jobs: Sequence[Claimed], asked_at: float) -> None:
        """Run suspects that were claimed after `make_room`, asked for at `asked_at` by the steady counter."""
        self._is_used = True
        self.pool.put(jobs)
        if any(pool.is_busy for pool in self._others):
            now = self._shared.clock.monotonic()
            rest_s = _BETWEEN_S * len(jobs)
            if self._in_a_row >= _AT_FIRST:
                rest_s = max(rest_s, (now - asked_at) * _CLAIM_REST)
            self._in_a_row += len(jobs)
            self._rest_until = max(self._rest_until, now + rest_s)
            asyncio.get_running_loop().call_later(rest_s, self._wants_jobs)

    def _look(self) -> None:
        """React to a free slot; once all are free, the other jobs go on."""
        if self._is_used and self.pool.is_idle:
            self._is_used = False
            self.let_go()
        self._wants_jobs()

    def _hold(self, now: float) -> None:
        if self._held_at is None:
            self._held_at = now
            for pool in self._others:
                pool.hold()

    def clear(self) -> None:
        """React to the end of the suspects."""
        self._in_a_row = 0
        self.let_go()

    def let_go(self) -> None:
        """Let other jobs start again, unless a suspect runs, and leave them the process for a while."""
        self._wanted_at = None
        if self._held_at is None or self._is_used:
            return
        now = self._shared.clock.monotonic()
        self._rest_until = now + (now - self._held_at) * _REST
        self._held_at = None
        for pool in self._others:
            pool.let_go()
