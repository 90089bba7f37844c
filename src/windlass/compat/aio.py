"""The async jobs system's core API under its own names, for asyncio. Here a lower priority number runs earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.client.operations import Operator
from windlass.compat.rows import DEFAULT_PRIORITY, LegacyJob, LegacyLetter, job_row, letter_row
from windlass.core.breaker import Breaker
from windlass.core.checks import check_range
from windlass.core.letter_page import LetterQuery, LetterStatus
from windlass.errors import InvalidInput

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


def lane_of(job_type: str) -> str:
    """Choose the lane of a type that no process has declared."""
    return "fast" if job_type in FAST_TYPES else "slow"


async def enqueue_job(
    db: Operator,
    type: str,  # noqa: A002 - the name of the async jobs system
    payload: Mapping[str, Any],
    opts: Mapping[str, Any] | None = None,
) -> int:
    """Enqueue a job of any type; returns its number, or that of the job that holds the dedup key.

    A declared task has its own lane, attempts and timeout; any other goes to `fast` or `slow` by its type. With
    `{"connection": …}` the job belongs to the caller's transaction; with `{"rerun": True}` a running job that holds the dedup key
    runs once more after this run.
    """
    given = {name.replace("-", "_").rstrip("?"): value for name, value in (opts or {}).items() if value is not None}
    connection = given.pop("connection", None)
    options = _options(given)
    if not await db.declares(type):
        options["lane"] = lane_of(type)
    return (await db.enqueue_job(await db.described(type, payload, options, accepts_unknown=True), connection)).id


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name == "rerun":
            options |= {"on_conflict": "rerun"} if value else {}
        elif name in _OPTIONS:
            options[_OPTIONS[name]] = value
        else:
            raise InvalidInput(name, value, f"is not an option; there are {', '.join(_OPTIONS)}, connection, rerun")
    if "priority" in options:
        check_range("priority", options["priority"], 0, 2**31 - 1)
        options["priority"] = DEFAULT_PRIORITY - options["priority"]
    return options


async def get_queue_stats(db: Operator) -> dict[str, int]:
    """Sum up the queue: pending, processing, failed, oldest_pending_minutes."""
    stats = await db.stats()
    return {name: getattr(stats, name) for name in ("pending", "processing", "failed", "oldest_pending_minutes")}


async def get_jobs_by_correlation(db: Operator, correlation_id: str) -> Sequence[LegacyJob]:
    """Find the jobs of one user action."""
    return [job_row(job) for job in await db.jobs_by_correlation(correlation_id)]


async def fail_job(db: Operator, job_id: int, error: str, opts: Mapping[str, Any] | None = None) -> LegacyJob:
    """Fail a job by hand; `{"will_retry": True}` leaves it to its retry policy."""
    given = {name.replace("-", "_").rstrip("?"): value for name, value in (opts or {}).items()}
    if not given.keys() <= {"will_retry"}:
        raise InvalidInput("opts", opts, "has only will_retry")
    return job_row(await db.fail(job_id, error, will_retry=bool(given.get("will_retry", False))))


async def move_to_dead_letter(db: Operator, job_id: int, error: str) -> LegacyJob:
    """Fail a job for good, whether it runs or waits."""
    return job_row(await db.fail(job_id, error, will_retry=False))


async def get_dead_letters(db: Operator, limit: int = 50) -> Sequence[LegacyLetter]:
    """Read the dead letters that were not acknowledged, newest first."""
    page = await db.letters.list(LetterQuery(status=LetterStatus.OPEN, limit=limit))
    return [letter_row(letter) for letter in page.letters]


async def get_dead_letter(db: Operator, letter_id: int) -> LegacyLetter:
    """Read a dead letter; its `original_job` has what `enqueue_job` takes."""
    return letter_row(await db.letters.get(letter_id))


async def acknowledge_dead_letter(db: Operator, letter: Mapping[str, Any]) -> LegacyLetter:
    """Acknowledge a dead letter: `{"id": 123, "acknowledged_by": "admin@lipas.fi"}`."""
    settled = await db.letters.acknowledge([letter["id"]], by=letter["acknowledged_by"], note=letter.get("note"))
    return letter_row(settled.one())


async def reset_circuit_breaker(db: Operator, service_name: str) -> Breaker | None:
    """Close a breaker."""
    return await db.breakers.reset(service_name)


async def update_circuit_breaker(db: Operator, breaker: Mapping[str, Any]) -> Breaker | None:
    """Force a breaker open or closed: `{"service_name": "external-api", "state": "open"}`; when is now."""
    match breaker.get("state"):
        case "open":
            return await db.breakers.force_open(breaker["service_name"])
        case "closed":
            return await db.breakers.reset(breaker["service_name"])
    raise InvalidInput("state", breaker.get("state"), "use open or closed")
