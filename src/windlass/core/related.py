"""Jobs that belong together: by what they were asked for, and by who enqueued them."""

from __future__ import annotations

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
