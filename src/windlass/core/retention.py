"""What is kept, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from windlass.core.checks import check_range, check_wait
from windlass.core.record import record


@record(kw_only=True)
class Retention:
    """How much history stays; unacknowledged letters, items and keys held for ever always do."""

    keep_executions: int = 100
    """A run of a job that stays goes only when it is beyond these newest and older than `keep`."""
    keep: timedelta = timedelta(days=30)
    keep_dead: timedelta = timedelta(days=90)
    """For letters, from the moment they were acknowledged or closed."""

    def __post_init__(self) -> None:
        """Refuse limits that would take what is still in use."""
        check_range("keep_executions", self.keep_executions, 1, 1_000_000)
        check_wait("keep", self.keep, least=timedelta())
        check_wait("keep_dead", self.keep_dead, least=timedelta())


DEFAULT = Retention()


class Pruned(NamedTuple):
    """How many rows went: runs of jobs that stay, finished jobs (with their runs), letters."""

    executions: int = 0
    jobs: int = 0
    letters: int = 0
