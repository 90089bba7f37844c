"""Jobs that belong together: by what they were asked for, and by who enqueued them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from windlass.core.job import Job

MOST_RELATED = 500


class Related(NamedTuple):
    """The jobs of one correlation, oldest first."""

    jobs: tuple[Job, ...]
    is_complete: bool


class Branch(NamedTuple):
    """A job and how far it is from the first of its tree."""

    job: Job
    depth: int


class Tree(NamedTuple):
    """A job's first ancestor and what came of it, level by level."""

    branches: tuple[Branch, ...]
    is_complete: bool


def trace(jobs: Sequence[Job]) -> list[Branch]:
    """Put each job before those it enqueued, the oldest first; a parent that is not among them does not count.

    A parent is any number a client gave: of jobs in a circle the oldest is taken for the first.
    """
    children: dict[int | None, list[Job]] = defaultdict(list)
    known = {job.id for job in jobs}
    oldest_first = sorted(jobs, key=lambda job: job.id)
    for job in oldest_first:
        children[job.parent_id if job.parent_id in known else None].append(job)
    traced: dict[int, Branch] = {}
    for root in [*children[None], *oldest_first]:
        _descend(Branch(root, 0), children, traced)
    return list(traced.values())


def _descend(root: Branch, children: dict[int | None, list[Job]], traced: dict[int, Branch]) -> None:
    stack = [root]
    while stack:
        branch = stack.pop()
        if branch.job.id not in traced:
            traced[branch.job.id] = branch
            below = children.get(branch.job.id, ())
            stack.extend(Branch(child, branch.depth + 1) for child in reversed(below))
