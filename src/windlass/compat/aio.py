"""Seed 003's core API under its own names, for asyncio. Here a lower priority number runs earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from windlass.client.operations import Operator
from windlass.core.checks import check_range
from windlass.core.ids import job_uuid
from windlass.core.job import DeadLetter, Job, JobState, WaitReason
from windlass.core.payload import decode
from windlass.errors import InvalidInput

DEFAULT_PRIORITY = 100
FAST_TYPES = frozenset({"email", "produce-reminders", "cleanup-jobs", "integration", "webhook"})
_OPTIONS = {
    "priority": "priority",
    "run_at": "run_at",
    "correlation_id": "correlation_id",
    "dedup_key": "unique_key",
    "max_attempts": "max_attempts",
    "created_by": "created_by",
    "parent_job_id": "parent_id",
}
_DEAD_AGAIN = frozenset({WaitReason.RETRY, WaitReason.LOST})


class LegacyJob(NamedTuple):
    """A row of the seed's `jobs` table."""

    id: int
    type: str
    payload: Mapping[str, Any]
    status: str
    priority: int
    attempts: int
    max_attempts: int | None
    run_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    correlation_id: str
    parent_job_id: int | None
    created_by: str | None
    dedup_key: str | None
    created_at: datetime
    updated_at: datetime


def lane_of(job_type: str) -> str:
    """Tell which lane the seed gives a type."""
    return "fast" if job_type in FAST_TYPES else "slow"


def status_of(job: Job) -> str:
    """Name a state in the seed's words; paused and cancelled keep their own."""
    if job.state is JobState.SCHEDULED:
        return "failed" if job.wait_reason in _DEAD_AGAIN else "pending"
    return {JobState.RUNNING: "processing", JobState.FAILED: "dead"}.get(job.state, job.state.value)


def shown(job: Job) -> LegacyJob:
    """Show a job as the seed does."""
    return LegacyJob(
        id=job.id,
        type=job.task,
        payload=decode(job.payload),
        status=status_of(job),
        priority=DEFAULT_PRIORITY - job.priority,
        attempts=job.attempt,
        max_attempts=job.max_attempts,
        run_at=job.run_at,
        started_at=job.started_at,
        completed_at=job.closed_at,
        last_error=job.last_error,
        last_error_at=job.last_error_at,
        correlation_id=job.correlation_id or str(job_uuid(job.id)),
        parent_job_id=job.parent_id,
        created_by=job.created_by,
        dedup_key=job.unique_key,
        created_at=job.created_at,
        updated_at=job.updated_at,
    )


async def enqueue_job(
    db: Operator,
    type: str,  # noqa: A002 - the seed's name
    payload: Mapping[str, Any],
    opts: Mapping[str, Any] | None = None,
) -> int:
    """Enqueue a job of any type; returns its number, or that of the job that holds the dedup key."""
    options = _options(opts or {})
    job, _ = db.describe(type, payload, {"lane": lane_of(type), **options})
    return (await db.enqueue_job(job)).id


def _options(opts: Mapping[str, Any]) -> dict[str, Any]:
    given = {name.replace("-", "_"): value for name, value in opts.items() if value is not None}
    for name, value in given.items():
        if name not in _OPTIONS:
            raise InvalidInput(name, value, f"is not an option; there are {', '.join(_OPTIONS)}")
    priority = given.get("priority", DEFAULT_PRIORITY)
    check_range("priority", priority, 0, 2**31 - 1)
    return {**{_OPTIONS[name]: value for name, value in given.items()}, "priority": DEFAULT_PRIORITY - priority}


async def get_queue_stats(db: Operator) -> dict[str, int]:
    """Sum up the queue: pending, processing, failed, oldest_pending_minutes."""
    stats = await db.stats()
    return {name: getattr(stats, name) for name in ("pending", "processing", "failed", "oldest_pending_minutes")}


async def get_jobs_by_correlation(db: Operator, correlation_id: str) -> Sequence[LegacyJob]:
    """Find the jobs of one user action."""
    return [shown(job) for job in await db.jobs_by_correlation(correlation_id)]


async def fail_job(db: Operator, job_id: int, error: str, opts: Mapping[str, Any] | None = None) -> LegacyJob:
    """Fail a job by hand; `{"will_retry": True}` leaves it to its retry policy."""
    given = {name.replace("-", "_").rstrip("?"): value for name, value in (opts or {}).items()}
    if not given.keys() <= {"will_retry"}:
        raise InvalidInput("opts", opts, "has only will_retry")
    return shown(await db.fail(job_id, error, will_retry=bool(given.get("will_retry", False))))


async def move_to_dead_letter(db: Operator, job_id: int, error: str) -> LegacyJob:
    """Fail a job for good."""
    return shown(await db.fail(job_id, error, will_retry=False))


async def get_dead_letter(db: Operator, letter_id: int) -> DeadLetter:
    """Read a dead letter."""
    return await db.get_letter(letter_id)


async def acknowledge_dead_letter(db: Operator, letter: Mapping[str, Any]) -> DeadLetter:
    """Note who has seen a dead letter: `{"id": 123, "acknowledged_by": "admin@lipas.fi"}`."""
    return await db.acknowledge(letter["id"], by=letter["acknowledged_by"], note=letter.get("note"))


async def reset_circuit_breaker(db: Operator, service_name: str) -> Any:
    """Close a breaker."""
    return await db.reset_breaker(service_name)


async def update_circuit_breaker(db: Operator, breaker: Mapping[str, Any]) -> Any:
    """Force a breaker open or closed: `{"service_name": "external-api", "state": "open"}`; when is now."""
    match breaker.get("state"):
        case "open":
            return await db.force_open(breaker["service_name"])
        case "closed":
            return await db.reset_breaker(breaker["service_name"])
    raise InvalidInput("state", breaker.get("state"), "use open or closed")
