"""Jobs that belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.checks import check_range, check_text
from windlass.core.filter import own_job
from windlass.core.ids import MAX_JOB, job_uuid
from windlass.core.job import MAX_KEY, Job, JobState, RunReason, RunStatus
from windlass.core.related import MOST_RELATED, MOST_RUNS, Branch, ChildJob, JobRun, NewestRuns, Related, Span, Trace, Tree, trace
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.move import possible
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= {
    "list_correlation": rows.JOB,
    "list_tree": Shape.of(Job, after=1),
    "list_newest_runs": Shape.of(JobRun),
    "list_newest_children": Shape.of(ChildJob),
}
_MOST_PAST = 100
"""The limit inside of `list_newest_runs`."""


def list_by_correlation(correlation_id: str, *, after: int = 0, limit: int = MOST_RELATED) -> Call[Related]:
    """Read the jobs of one correlation with a number above `after`; a job's own UUID means the job and its children."""
    check_text("correlation_id", correlation_id, MAX_KEY)
    check_range("after", after, 0, MAX_JOB)
    check_range("limit", limit, 1, MOST_RELATED)
    own = own_job(correlation_id)
    params = {"correlation_id": correlation_id if own is None else str(job_uuid(own)), "own": own or 0, "after": after}

    def related(found: list[Row]) -> Related:
        return Related(tuple(rows.jobs(found[:limit])), len(found) <= limit)

    return single("list_correlation", params, lambda found: related(list(found)), is_read=True)


def trace_correlation(correlation_id: str, *, after: int = 0, limit: int = MOST_RELATED) -> Call[Trace]:
    """Read what `list_by_correlation` reads as a tree, with the newest runs of each job."""
    listed = list_by_correlation(correlation_id, after=after, limit=limit)

    def steps(means: Means) -> Steps[Trace]:
        related = yield from listed.steps(means)
        runs = yield from newest_runs([job.id for job in related.jobs])
        [[moment]] = yield Step("clock", {})
        spans = tuple(Span(job, depth, runs.get(job.id, ())) for job, depth in trace(related.jobs))
        return Trace(correlation_id, moment, spans, related.is_complete, related.jobs[-1].id if related.jobs else after)

    return Call(steps, is_read=True)


def trace_jobs(ids: Sequence[int]) -> Call[Trace]:
    """Read some jobs as a tree, with the newest runs of each; those that do not exist are left out."""

    def steps(_: Means) -> Steps[Trace]:
        jobs = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(possible(ids))}))) if ids else []
        runs = yield from newest_runs([job.id for job in jobs])
        [[moment]] = yield Step("clock", {})
        spans = tuple(Span(job, depth, runs.get(job.id, ())) for job, depth in trace(jobs))
        return Trace("", moment, spans, is_complete=True, last_id=jobs[-1].id if jobs else 0)

    return Call(steps, is_read=True)


def read_past(jobs: Sequence[int], templates: Sequence[int], *, limit: int) -> Call[NewestRuns]:
    """Read up to `limit` of the newest runs of each of some jobs, and of the newest jobs that templates have made."""
    check_range("limit", limit, 1, _MOST_PAST)

    def steps(_: Means) -> Steps[NewestRuns]:
        return NewestRuns(
            (yield from newest_runs(possible(jobs), limit)), (yield from _newest_children(possible(templates), limit))
        )

    return Call(steps, is_read=True)


def _newest_children(parents: Sequence[int], limit: int) -> Steps[dict[int, list[ChildJob]]]:
    found: defaultdict[int, list[ChildJob]] = defaultdict(list)
    params = {"ids": batches.numbers(parents), "limit": limit}
    for parent_id, job_id, state, created_at in (yield Step("list_newest_children", params)) if parents else ():
        found[parent_id].append(ChildJob(parent_id, job_id, JobState(state), created_at))
    return found


def newest_runs(ids: Sequence[int], limit: int = MOST_RUNS) -> Steps[dict[int, tuple[JobRun, ...]]]:
    """Read the newest ended runs of jobs, the oldest first."""
    found: defaultdict[int, list[JobRun]] = defaultdict(list)
    for row in (yield Step("list_newest_runs", {"ids": batches.numbers(ids), "limit": limit})) if ids else ():
        status, reason = RunStatus(row[3]), None if row[4] is None else RunReason(row[4])
        found[row[0]].append(JobRun._make((*row[:3], status, reason, *row[5:])))
    return {job_id: tuple(runs) for job_id, runs in found.items()}


def list_tree(job_id: int) -> Call[Tree]:
    """Read a job's first ancestor and everything that came of it; nothing when there is no such job."""
    params = {"job_id": job_id if possible([job_id]) else 0}
    return single("list_tree", params, lambda found: _tree(list(found)), is_read=True)


def _tree(found: list[Row]) -> Tree:
    # A parent is any number a client gave: in a circle a job comes more than once.
    branches: dict[int, Branch] = {}
    for row in found[:MOST_RELATED]:
        [job] = rows.jobs([row[1:]])
        branches.setdefault(job.id, Branch(job, row[0]))
    return Tree(tuple(branches.values()), len(found) <= MOST_RELATED)
