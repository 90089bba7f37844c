"""The async jobs system's core API under its own names. Here a lower priority number runs earlier; `db` is the application."""

from __future__ import annotations

from windlass.client.blocking import twin_of
from windlass.compat import aio
from windlass.compat.aio import FAST_TYPES
from windlass.compat.rows import DEFAULT_PRIORITY, LegacyJob, LegacyLetter

enqueue_job = twin_of(aio.enqueue_job)
get_queue_stats = twin_of(aio.get_queue_stats)
get_jobs_by_correlation = twin_of(aio.get_jobs_by_correlation)
fail_job = twin_of(aio.fail_job)
move_to_dead_letter = twin_of(aio.move_to_dead_letter)
get_dead_letters = twin_of(aio.get_dead_letters)
get_dead_letter = twin_of(aio.get_dead_letter)
acknowledge_dead_letter = twin_of(aio.acknowledge_dead_letter)
reset_circuit_breaker = twin_of(aio.reset_circuit_breaker)
update_circuit_breaker = twin_of(aio.update_circuit_breaker)

__all__ = [
    "DEFAULT_PRIORITY",
    "FAST_TYPES",
    "LegacyJob",
    "LegacyLetter",
    "acknowledge_dead_letter",
    "enqueue_job",
    "fail_job",
    "get_dead_letter",
    "get_dead_letters",
    "get_jobs_by_correlation",
    "get_queue_stats",
    "move_to_dead_letter",
    "reset_circuit_breaker",
    "update_circuit_breaker",
]
