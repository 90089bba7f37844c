"""Seed 003's core API under its own names. Here a lower priority number runs earlier; `db` is the application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.app import Windlass
from windlass.client.blocking import run
from windlass.compat import aio
from windlass.compat.aio import DEFAULT_PRIORITY, FAST_TYPES, LegacyJob
from windlass.core.job import DeadLetter


def enqueue_job(
    db: Windlass,
    type: str,  # noqa: A002 - the seed's name
    payload: Mapping[str, Any],
    opts: Mapping[str, Any] | None = None,
) -> int:
    """Enqueue a job of any type; returns its number, or that of the job that holds the dedup key."""
    return run(aio.enqueue_job(db.blocking, type, payload, opts))


def get_queue_stats(db: Windlass) -> dict[str, int]:
    """Sum up the queue: pending, processing, failed, oldest_pending_minutes."""
    return run(aio.get_queue_stats(db.blocking))


def get_jobs_by_correlation(db: Windlass, correlation_id: str) -> Sequence[LegacyJob]:
    """Find the jobs of one user action."""
    return run(aio.get_jobs_by_correlation(db.blocking, correlation_id))


def fail_job(db: Windlass, job_id: int, error: str, opts: Mapping[str, Any] | None = None) -> LegacyJob:
    """Fail a job by hand; `{"will_retry": True}` leaves it to its retry policy."""
    return run(aio.fail_job(db.blocking, job_id, error, opts))


def move_to_dead_letter(db: Windlass, job_id: int, error: str) -> LegacyJob:
    """Fail a job for good."""
    return run(aio.move_to_dead_letter(db.blocking, job_id, error))


def get_dead_letter(db: Windlass, letter_id: int) -> DeadLetter:
    """Read a dead letter."""
    return run(aio.get_dead_letter(db.blocking, letter_id))


def acknowledge_dead_letter(db: Windlass, letter: Mapping[str, Any]) -> DeadLetter:
    """Note who has seen a dead letter."""
    return run(aio.acknowledge_dead_letter(db.blocking, letter))


def reset_circuit_breaker(db: Windlass, service_name: str) -> Any:
    """Close a breaker."""
    return run(aio.reset_circuit_breaker(db.blocking, service_name))


def update_circuit_breaker(db: Windlass, breaker: Mapping[str, Any]) -> Any:
    """Force a breaker open or closed."""
    return run(aio.update_circuit_breaker(db.blocking, breaker))


__all__ = [
    "DEFAULT_PRIORITY",
    "FAST_TYPES",
    "LegacyJob",
    "acknowledge_dead_letter",
    "enqueue_job",
    "fail_job",
    "get_dead_letter",
    "get_jobs_by_correlation",
    "get_queue_stats",
    "move_to_dead_letter",
    "reset_circuit_breaker",
    "update_circuit_breaker",
]
