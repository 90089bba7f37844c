"""The state of the queue in four numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from windlass.core.job import Count, Job, JobState, WaitReason

_FAILED = frozenset({WaitReason.RETRY, WaitReason.LOST})


class QueueStats(NamedTuple):
    """Jobs that wait, run, and wait for another try after a failure; and how long the oldest due job has waited."""

    pending: int
    processing: int
    failed: int
    oldest_pending_minutes: int


def queue_stats(counts: Sequence[Count], oldest: Job | None, now: datetime) -> QueueStats:
    """Sum the counts by seed 003's words."""
    waiting = {JobState.PENDING, JobState.SCHEDULED}
    return QueueStats(
        pending=sum(each.jobs for each in counts if each.state in waiting and not _has_failed(each)),
        processing=sum(each.jobs for each in counts if each.state is JobState.RUNNING),
        failed=sum(each.jobs for each in counts if _has_failed(each)),
        oldest_pending_minutes=0 if oldest is None else max(0, int((now - oldest.created_at).total_seconds() // 60)),
    )


def _has_failed(count: Count) -> bool:
    return count.state is JobState.SCHEDULED and count.wait_reason in _FAILED
