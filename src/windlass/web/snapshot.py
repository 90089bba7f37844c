"""How things are at this moment: one look for everybody who has the page open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from windlass.client.operations import Operator
from windlass.core.breaker import Breaker, BreakerState
from windlass.core.gate import Lane
from windlass.core.job import Count, Job, JobState, RunStatus
from windlass.core.page import JobQuery, Sort
from windlass.core.runs import Minute
from windlass.core.worker import WorkerRecord

MINUTES = 30
_JOBS = 20
_SORTED = 1_000
_WORKERS = 8
_BREAKERS = 50
_FRESH_S = 0.5
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one look found; `minutes` has every minute, also those in which nothing ended."""

    at: datetime
    counts: Sequence[Count]
    jobs: Sequence[Job]
    traces: Mapping[int, str]
    """The stack traces that the newest runs of these jobs left, by job."""
    total: int
    lanes: Sequence[Lane]
    workers: Sequence[WorkerRecord]
    breakers: Sequence[Breaker]
    minutes: Sequence[Minute]

    def count(self, *states: JobState) -> int:
        """Count the jobs in these states."""
        return sum(one.jobs for one in self.counts if one.state in states)


class SnapshotCache:
    """Looks when somebody asks, and at most a few times a second."""

    def __init__(self, app: Operator) -> None:
        """Look at the database of `app`."""
        self._app = app
        self._looking = asyncio.Lock()
        self._seen: Snapshot | None = None
        self._looked_at = -_FRESH_S
        self._traces: dict[tuple[int, int], str | None] = {}
        """What was read before, by job and number of the run: most looks find the same failures as the one before."""

    async def now(self) -> Snapshot:
        """Return how things are, or were a moment ago."""
        async with self._looking:
            if self._seen is None or time.monotonic() - self._looked_at >= _FRESH_S:
                self._seen = await self._look()
                self._looked_at = time.monotonic()
            return self._seen

    async def _look(self) -> Snapshot:
        app = self._app
        at = await (await app.store()).clock()
        counts = await app.counts()
        # What moved last is found by sorting; among many the newest will do, which an index gives.
        is_small = sum(one.jobs for one in counts) <= _SORTED
        page = await app.list(JobQuery(sort=Sort.UPDATED_AT if is_small else Sort.CREATED_AT, limit=_JOBS))
        workers = await app.workers.list(limit=_WORKERS)
        breakers = await app.breakers.list(limit=_BREAKERS)
        return Snapshot(
            at=at,
            counts=counts,
            jobs=page.jobs,
            traces=await self._read_traces(page.jobs),
            total=page.total,
            lanes=await app.lanes.list(),
            workers=[worker for worker in workers if worker.is_online],
            breakers=[breaker for breaker in breakers if breaker.state is not BreakerState.CLOSED],
            minutes=await self._minutes(at),
        )

    async def _read_traces(self, jobs: Sequence[Job]) -> dict[int, str]:
        failed = [job for job in jobs if job.last_error is not None and job.state is not JobState.RUNNING]
        known, self._traces = self._traces, {}
        for job in failed:
            run = (job.id, job.executions)
            self._traces[run] = known[run] if run in known else await self._read_trace(job)
        return {job_id: trace for (job_id, _), trace in self._traces.items() if trace is not None}

    async def _read_trace(self, job: Job) -> str | None:
        runs = await self._app.executions(job.id, limit=1)
        return runs[0].stack_trace if runs and runs[0].status is RunStatus.FAILED else None

    async def _minutes(self, at: datetime) -> list[Minute]:
        last = at.replace(second=0, microsecond=0)
        first = last - (MINUTES - 1) * _MINUTE
        found = {one.minute: one for one in await self._app.runs.minutes(first, last + _MINUTE)}
        every = (first + number * _MINUTE for number in range(MINUTES))
        return [found.get(minute, Minute(minute)) for minute in every]
