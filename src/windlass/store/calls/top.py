"""What the live view of a terminal shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import NamedTuple

from windlass.core.filter import JobFilter, StateFilter
from windlass.core.insights import Summary, summarize
from windlass.core.job import Job, JobState
from windlass.core.page import JobQuery, Sort
from windlass.core.worker import LongRun, WorkerRecord
from windlass.store.calls import lists, workers
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.insights import read_flow, read_whole

TOP_PARTS = frozenset({"whole", "workers", "slowest", "failing"})
"""What can be read beside the lanes and tasks; `whole` is what a summary has and no view shows."""


class Top(NamedTuple):
    """What the live view of a terminal shows."""

    summary: Summary
    workers: Sequence[WorkerRecord] = ()
    slowest: Sequence[LongRun] = ()
    """The jobs that run now, beginning with the one that started first."""
    failing: Sequence[Job] = ()
    """The jobs that failed last."""


def top(parts: Collection[str] = TOP_PARTS, *, jobs: int = 30) -> Call[Top]:
    """Read the statistics of every task and lane, and of the other parts those that are named."""
    failed = JobQuery(filter=JobFilter(states=(StateFilter(JobState.FAILED),)), sort=Sort.COMPLETED_AT, limit=jobs)
    running = {"older_than": timedelta(), "limit": jobs, "most": workers.MAX_STARTED}

    def steps(means: Means) -> Steps[Top]:
        flow = yield from read_flow()
        found = Top((yield from read_whole(flow, means)) if "whole" in parts else summarize(flow.present, flow.recent))
        if "workers" in parts:
            found = found._replace(workers=(yield from workers.read_started(flow.registered)))
        if "slowest" in parts:
            found = found._replace(slowest=[LongRun(*row) for row in (yield Step("long_runs", running))])
        if "failing" in parts:
            page = yield from lists.read_page(failed, found.summary.present.counts)
            found = found._replace(failing=page.jobs)
        return found

    return Call(steps, is_read=True, is_snapshot=True)
