"""A snapshot of the queue that all users of the first page share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from markupsafe import Markup

from windlass.client.operations import Operator
from windlass.core.alerts import ShownAlert
from windlass.core.audit import AuditEntry
from windlass.core.breaker import Breaker, BreakerState
from windlass.core.gate import Lane
from windlass.core.insights import NextFire, Summary
from windlass.core.job import Count, Job, JobState, RunStatus
from windlass.core.letter_page import LetterCounts, LetterGroups
from windlass.core.record import record
from windlass.core.runs import Minute
from windlass.core.sample import Sample, retrying, sample
from windlass.core.worker import WorkerRecord

MINUTES = 60
_FRESH_S = 0.5
_AGAIN = 5
"""How many minutes are read again at each look: what ended before does not change any more."""
_WHOLE_S = 240.0
"""How long minutes that were read are taken for true."""
_MINUTE = timedelta(minutes=1)
_SESSIONS = frozenset({"log in", "log out"})
"""Actions that change no job."""


@record(kw_only=True)
class Snapshot:
    """What one look found, all of one moment; `minutes` and `samples` have every minute, also those without data."""

    summary: Summary
    jobs: Sequence[Job]
    traces: Mapping[int, str]
    """The stack traces that the newest runs of these jobs left, by job."""
    total: int
    lanes: Sequence[Lane]
    workers: Sequence[WorkerRecord]
    breakers: Sequence[Breaker]
    """Those that are not closed."""
    minutes: Sequence[Minute]
    samples: Sequence[Sample | None]
    alerts: Sequence[ShownAlert]
    """Raised and not silenced, worst first."""
    groups: LetterGroups
    deaths: LetterCounts
    fires: Sequence[NextFire]
    deeds: Sequence[AuditEntry]
    boards: dict[tuple[object, ...], Markup] = field(default_factory=dict)
    """How this is drawn, by what the viewer may do."""

    @property
    def at(self) -> datetime:
        """The moment of the look."""
        return self.summary.present.at

    @property
    def counts(self) -> Sequence[Count]:
        """The jobs by task, lane and state."""
        return self.summary.present.counts

    def count(self, *states: JobState) -> int:
        """Count the jobs in these states."""
        return sum(one.jobs for one in self.counts if one.state in states)

    @property
    def retrying(self) -> int:
        """How many jobs wait for another try."""
        return retrying(self.counts)


class SnapshotCache:
    """Looks when a page asks, at most a few times a second."""

    def __init__(self, app: Operator) -> None:
        """Look at the database of `app`."""
        self._app = app
        self._looking = asyncio.Lock()
        self._seen: Snapshot | None = None
        self._looked_at = -_FRESH_S
        self._changes = 0
        """How often what was seen before became old."""
        self._minutes: dict[datetime, Minute] = {}
        self._whole_at = -_WHOLE_S
        self._traces: dict[tuple[int, int], str | None] = {}
        """What was read before, by job and number of the run: most looks find the same failures as the one before."""

    async def now(self) -> Snapshot:
        """Return the state of the queue, at most a moment old."""
        async with self._looking:
            if self._seen is None or time.monotonic() - self._looked_at >= _FRESH_S:
                changes = self._changes
                self._seen = await self._look()
                # What changed meanwhile may have been too late for this look.
                self._looked_at = time.monotonic() if changes == self._changes else -_FRESH_S
            return self._seen

    def forget(self) -> None:
        """Look again at the next request: a user who has changed something must see it."""
        self._changes += 1
        self._looked_at = -_FRESH_S

    async def _look(self) -> Snapshot:
        now = time.monotonic()
        is_whole = now - self._whole_at >= _WHOLE_S
        seen = await self._app.insights.overview(minutes=MINUTES if is_whole else _AGAIN)
        every = _every_minute(seen.at)
        if is_whole:
            self._minutes, self._whole_at = {}, now
        fresh = set(every[-_AGAIN:])
        self._minutes = {one: known for one, known in self._minutes.items() if one not in fresh}
        self._minutes |= {one.minute: one for one in seen.minutes}
        # What is so now stands for the minute that goes on.
        samples = {one.minute: one for one in (*seen.samples, sample(seen.summary))}
        return Snapshot(
            summary=seen.summary,
            jobs=seen.page.jobs,
            # By the number of a run, which does not change: read after the look, they are of the same runs.
            traces=await self._read_traces(seen.page.jobs),
            total=seen.page.total,
            lanes=seen.lanes,
            workers=[worker for worker in seen.workers if worker.is_online],
            breakers=[breaker for breaker in seen.summary.present.breakers if breaker.state is not BreakerState.CLOSED],
            minutes=[self._minutes.get(minute, Minute(minute)) for minute in every],
            samples=[samples.get(minute) for minute in every],
            alerts=seen.alerts.open,
            groups=seen.groups,
            deaths=seen.deaths,
            fires=seen.fires,
            deeds=[one for one in seen.deeds if one.action not in _SESSIONS],
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


def _every_minute(at: datetime) -> list[datetime]:
    first = at.replace(second=0, microsecond=0) - (MINUTES - 1) * _MINUTE
    return [first + number * _MINUTE for number in range(MINUTES)]
