"""Jobs that belong together."""

from __future__ import annotations

from windlass.core.checks import check_range, check_text
from windlass.core.filter import own_job
from windlass.core.ids import MAX_JOB, job_uuid
from windlass.core.job import MAX_KEY, Job
from windlass.core.related import MOST_RELATED, Branch, Related, Tree
from windlass.store import rows
from windlass.store.calls.call import Call, single
from windlass.store.calls.move import possible
from windlass.store.rows import Row, Shape

SHAPES = {
    "list_correlation": rows.JOB,
    "list_tree": Shape.of(Job, after=1),
}


def list_by_correlation(correlation_id: str, *, after: int = 0) -> Call[Related]:
    """Read the jobs of one correlation with a number above `after`; a job's own UUID means the job and its children."""
    check_text("correlation_id", correlation_id, MAX_KEY)
    check_range("after", after, 0, MAX_JOB)
    own = own_job(correlation_id)
    params = {"correlation_id": correlation_id if own is None else str(job_uuid(own)), "own": own or 0, "after": after}

    def related(found: list[Row]) -> Related:
        return Related(tuple(rows.jobs(found[:MOST_RELATED])), len(found) <= MOST_RELATED)

    return single("list_correlation", params, lambda found: related(list(found)), is_read=True)


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
