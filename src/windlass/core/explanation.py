"""Why a job, a lane or a task does or does not move: what was checked, what holds it back, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from windlass.core.durations import in_words
from windlass.core.record import record

MOST_BEFORE = 10_000
"""How many jobs before a waiting one are counted; beyond that it is "more than"."""
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)


class Situation(StrEnum):
    """What an explanation comes to; the values are part of the API and stay."""

    COMPLETED = "completed"
    FAILED = "failed"
    ATTEMPTS_USED_UP = "attempts_used_up"
    CANCELLED = "cancelled"
    UNIQUE_HOLDER = "unique_holder"
    RUNNING = "running"
    CLAIMED = "claimed"
    LEASE_EXPIRED = "lease_expired"
    HELD = "held"
    WAITING_FOR_ITS_TIME = "waiting_for_its_time"
    RETRY_WAIT = "retry_wait"
    SNOOZED = "snoozed"
    UPKEEP_NOT_RUNNING = "promotion_due_upkeep_not_running"
    CHORE_PAUSED = "chore_paused"
    PROMOTION_DUE = "promotion_due"
    LANE_PAUSED = "lane_paused"
    TASK_PAUSED = "task_paused"
    BREAKER_OPEN = "breaker_open"
    BREAKER_PROBING = "breaker_probing"
    NO_LIVE_WORKER = "no_live_worker"
    NO_WORKER_KNOWS_TASK = "no_worker_knows_task"
    NO_WORKER_SERVES_LANE = "no_worker_serves_lane"
    WORKERS_PAUSED = "workers_paused"
    WAITING_FOR_PULL_WORKER = "waiting_for_pull_worker"
    QUARANTINE = "quarantine"
    POOL_FULL = "pool_full"
    BEHIND_OTHERS = "behind_others"
    NEXT = "next"
    EMPTY = "empty"
    """Of a lane or task: no job is due."""
    HELD_BACK = "held_back"
    """Of a lane or task: a part of its due jobs is held back."""
    FAILING = "failing"
    """Of a task: most of its runs fail."""
    FLOWING = "flowing"
    """Of a lane or task: nothing holds its jobs back."""


@record
class Check:
    """One gate that was looked at; `passed` is None where it cannot be known."""

    gate: str
    passed: bool | None
    reason: str
    verdict: Situation | None = None
    """What it is called when this gate is the first that holds back."""
    command: str | None = None


def passes(gate: str, reason: str) -> Check:
    """Make the check of a gate that is open."""
    return Check(gate, passed=True, reason=reason)


def holds(gate: str, reason: str, verdict: Situation, command: str) -> Check:
    """Make the check of a gate that holds back."""
    return Check(gate, passed=False, reason=reason, verdict=verdict, command=command)


class Prospect(StrEnum):
    """Whether a retry is likely to help."""

    LIKELY = "likely"
    UNLIKELY = "unlikely"
    UNKNOWN = "unknown"


@record(kw_only=True)
class FailureFacts:
    """How a job failed, and how others of its task ended that failed in the same way."""

    error: str
    error_type: str | None
    reason: str | None
    failed_runs: int
    """Kept runs of this job that failed, of at most the newest 20."""
    same_error_runs: int
    """Those of them that failed in the same way as the last."""
    fingerprint: str | None
    """Names the kind: task, type of error, and its message without numbers."""
    letter_id: int | None
    deaths: int
    """How many jobs died of the same kind, this one included."""
    is_deaths_exact: bool
    first_at: datetime | None
    last_at: datetime | None
    came_back: int
    """How many of those jobs were retried or requeued after they died."""
    succeeded: int
    failed_again: int
    completed_since: int
    """Runs of the task that completed since the last such failure, in whole minutes and within a day."""
    failed_since: int
    retry: Prospect
    because: str


@record(kw_only=True)
class Explanation:
    """The answer to "why does this not run", or "why did it run then"."""

    subject: str
    """`job`, `lane` or `task`."""
    name: str
    """The number of a job, or a name."""
    verdict: Situation
    sentence: str
    command: str | None
    """What to type first; None where there is nothing to do."""
    details: Sequence[Check]
    """Every gate in the order in which they matter."""
    position: int | None = None
    """A waiting job's place in its lane: 1 is next."""
    is_position_exact: bool = True
    """Otherwise there are more than `position` before it."""
    estimated_start_at: datetime | None = None
    failure: FailureFacts | None = None
    read_at: datetime


def moment(at: datetime) -> str:
    """Write an instant with its zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def lasting(duration: timedelta) -> str:
    """Write a duration to the second, or to the millisecond where it is short."""
    step = _SECOND if abs(duration) >= _SECOND else _MILLISECOND
    return in_words(max(duration, timedelta()) // step * step)


def counted(number: int, thing: str) -> str:
    """Write a number of things."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def typed(*words: object) -> str:
    """Write a command as a shell reads it."""
    return shlex.join(["windlass", *map(str, words)])
