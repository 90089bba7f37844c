"""A store that sees what a worker does, and when there is nothing left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from windlass.core.job import Claimed, JobState, Lease, RunReason, RunStatus, Slices
from windlass.core.outcome import Ending, Finish, Run
from windlass.core.payload import decode
from windlass.errors import StoreError, WindlassError
from windlass.store import Store
from windlass.testing.handlers import Errors
from windlass.testing.ran import Ran
from windlass.worker.worker import Worker

T = TypeVar("T")

_LOOK_UP_S = 0.05


class Watch:
    """Passes everything on to the store of one worker."""

    worker: Worker
    """The worker of this store; set after both are made."""

    def __init__(self, store: Store, errors: Errors, *, in_turn: bool, at_most: int, stops_at_failure: bool) -> None:
        """Take what handlers raised from `errors`; `in_turn` means that a run is over before the next one is claimed."""
        self._store = store
        self._errors = errors
        self._in_turn = in_turn
        self._at_most = at_most
        self._stops_at_failure = stops_at_failure
        self._held: dict[int, Claimed] = {}
        self._is_looked_through = False
        self.ran: list[Ran] = []
        self.problem: WindlassError | None = None
        """Why it could not go on."""
        self.is_over = False
        """Whether nothing more is to be started."""
        self.still = asyncio.Event()
        """Set when there is nothing to run now."""

    def __getattr__(self, verb: str) -> Any:
        """Pass on what need not be seen."""
        return getattr(self._store, verb)

    def end(self) -> None:
        """Start nothing more."""
        self.is_over = True
        self.still.set()

    def begin_again(self) -> None:
        """Look once more: something may have become due."""
        self._is_looked_through = False
        self.still.clear()

    async def slices(self) -> Slices:
        """Find work; the second time in a row that an idle worker asks, there is none."""
        await self._turn()
        if self._is_looked_through:
            self.still.set()
        self._is_looked_through = self.worker.is_idle
        return await self._heard(self._store.slices())

    async def claim(self, slices: Slices, limit: int, lease: Lease, *, started: bool = True) -> list[Claimed]:
        """Take jobs in order, unless it is over."""
        if not await self._may_claim(slices):
            return []
        return self._took(await self._heard(self._store.claim(slices, limit, lease, started=started)))

    async def claim_suspects(self, slices: Slices, limit: int, lease: Lease) -> list[Claimed]:
        """Take suspects, unless it is over."""
        if not await self._may_claim(slices):
            return []
        return self._took(await self._heard(self._store.claim_suspects(slices, limit, lease)))

    async def claim_probe(self, slices: Slices, breaker: str, lease: Lease) -> Claimed | None:
        """Take a breaker's probe, unless it is over."""
        if not await self._may_claim(slices):
            return None
        probe = await self._heard(self._store.claim_probe(slices, breaker, lease))
        self._took([] if probe is None else [probe])
        return probe

    async def finish(self, endings: Sequence[Ending]) -> dict[int, JobState]:
        """End runs and note how."""
        accepted = await self._heard(self._store.finish(endings))
        for end in endings:
            ending = end.decided()
            job, error = self._let_go(ending.id)
            if job is not None and ending.status is not None:
                # A refused end means that the job was changed meanwhile, as by a cancel.
                state = accepted.get(ending.id) or (await self._store.get(ending.id)).state
                self._note(_ran(job, ending, state, error))
        return accepted

    async def stop(self, runs: Sequence[tuple[int, int, Run]]) -> list[int]:
        """Report that cancelled runs have stopped, and note them."""
        stopped = await self._heard(self._store.stop(runs))
        for job_id, _, run in runs:
            job, _ = self._let_go(job_id)
            if job is not None and run.started_at is not None:
                self._note(_cancelled(job))
        return stopped

    async def _turn(self) -> None:
        while self._in_turn and not self.is_over and not self.worker.is_idle:
            # Checks now and then: with a store that has gone away ends are never recorded.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_UP_S):
                    await self.worker.idle()

    async def _may_claim(self, slices: Slices) -> bool:
        await self._turn()
        if len(self.ran) + len(self._held) >= self._at_most and not self.is_over:
            # What the worker knows may be old: only work that is still there is too much.
            left = {(part.lane, part.task) for part in (await self._store.slices()).merged().open}
            tasks = sorted({part.task for part in slices.merged().open if (part.lane, part.task) in left})
            if not tasks:
                return False
            self.problem = WindlassError(
                f"{self._at_most} jobs have run, more are due ({', '.join(tasks)}): does one enqueue itself? at_most allows more"
            )
            self.end()
        return not self.is_over

    def _took(self, jobs: list[Claimed]) -> list[Claimed]:
        if jobs:
            self._is_looked_through = False
            self._held.update((job.id, job) for job in jobs)
        return jobs

    def _let_go(self, job_id: int) -> tuple[Claimed | None, BaseException | None]:
        job = self._held.pop(job_id, None)
        return job, None if job is None else self._errors.pop((job.id, job.attempt), None)

    def _note(self, ran: Ran) -> None:
        self.ran.append(ran)
        if self._stops_at_failure and ran.status is RunStatus.FAILED:
            self.end()

    async def _heard(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except StoreError as error:
            # A worker would wait for better times; a test must not.
            self.problem = error
            self.end()
            raise


def first_failure(runs: Iterable[Ran]) -> Ran | None:
    """Find the first run that failed."""
    return next((ran for ran in runs if ran.status is RunStatus.FAILED), None)


def _ran(job: Claimed, ending: Finish, state: JobState, error: BaseException | None) -> Ran:
    assert ending.status is not None  # noqa: S101 - asked by the caller
    return Ran(
        job_id=job.id,
        task=job.task,
        arguments=decode(job.payload),
        attempt=job.attempt,
        status=ending.status,
        reason=ending.reason,
        state=state,
        result=None if ending.result is None else decode(ending.result, field="result"),
        error=error if ending.reason is RunReason.ERROR else None,
        message=None if ending.failure is None else ending.failure.message,
    )


def _cancelled(job: Claimed) -> Ran:
    return Ran(job.id, job.task, decode(job.payload), job.attempt, RunStatus.CANCELLED, RunReason.CANCELLED, JobState.CANCELLED)
