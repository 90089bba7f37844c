"""How deep the queue was, minute by minute."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.insights import Summary
from windlass.core.job import RETRIED, Count, JobState

KEPT = timedelta(hours=1)
"""How long samples are kept."""


class Sample(NamedTuple):
    """How deep the queue was when a minute was last looked at."""

    minute: datetime
    waiting: int
    oldest: timedelta
    running: int
    retrying: int
    in_per_second: float


def sample(summary: Summary) -> Sample:
    """Take the sample of the minute that a look was in."""
    total, present = summary.total, summary.present
    return Sample(
        present.at.replace(second=0, microsecond=0),
        total.jobs[JobState.PENDING],
        total.oldest_pending,
        total.jobs[JobState.RUNNING],
        retrying(present.counts),
        total.in_per_second,
    )


def retrying(counts: Iterable[Count]) -> int:
    """Count the jobs that wait for another try."""
    return sum(one.jobs for one in counts if one.state is JobState.SCHEDULED and one.wait_reason in RETRIED)
