"""A job as the API shows it: the interval scheduler's columns, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from fastapi import Request

from windlass.core.access import Role
from windlass.core.cadence import Cron, Recurrence
from windlass.core.ids import job_uuid
from windlass.core.interval import shown_interval, status_of
from windlass.core.job import RETRIED, WAITING, Job, JobState
from windlass.core.record import record
from windlass.core.retry import Profile, RetrySpec
from windlass.errors import InvalidInput
from windlass.secret_names import redact
from windlass.web.request_context import context_of
from windlass.wire.jobs import JobOut

CRAWL = "crawl"
"""The task of the interval scheduler's jobs."""
_SECOND = timedelta(seconds=1)
_UNFAILED = frozenset({JobState.RUNNING, JobState.COMPLETED})
_QUEUED = frozenset({JobState.SCHEDULED, JobState.PENDING})
_SAME = tuple(one.name for one in fields(JobOut) if one.name in {*Job.__dataclass_fields__, "last_run_at"})
"""What is shown as it is stored, where `job_fields` has no other value."""
_same_of = attrgetter(*_SAME)


@record(kw_only=True)
class JobDetailOut(JobOut):
    """A job with the result of its newest run that has ended."""

    result: Any


class AnswerRules(NamedTuple):
    """How answers are filled in: the profiles for what a job leaves open, and whether secrets are hidden."""

    profiles: Mapping[str, Profile]
    is_viewer: bool

    def hide(self, value: Any) -> Any:
        """Return a value as its reader may see it."""
        return redact(value) if self.is_viewer else value


def answer_rules(request: Request) -> AnswerRules:
    """Return the rules for the caller's answers."""
    context = context_of(request)
    return AnswerRules(context.server.profiles, not context.principal.may(Role.PRODUCER))


def job_out(job: Job, rules: AnswerRules) -> JobOut:
    """Show a job."""
    return JobOut(**job_fields(job, rules))


def job_fields(job: Job, rules: AnswerRules) -> dict[str, Any]:
    """Return every field of a job's answer."""
    payload = rules.hide(job.payload)
    state = job.state
    is_queued = state in _QUEUED
    return {
        **dict(zip(_SAME, _same_of(job), strict=True)),
        "id": job_uuid(job.id),
        "number": job.id,
        "status": status_of(state, job.wait_reason),
        "completed_at": _completed_at(job),
        "error_message": job.last_error,
        "next_run_at": job.run_at if is_queued else None,
        "is_paused": state is JobState.PAUSED,
        "cancelled_at": job.closed_at if state is JobState.CANCELLED else None,
        "lock_token": None if job.token is None else token_digest(job.token),
        "lock_acquired_at": None if job.token is None else job.claimed_at,
        "metadata": rules.hide(job.metadata),
        "payload": payload,
        "wait_reason": job.wait_reason if state in WAITING else None,
        "timeout_ms": None if job.timeout_us is None else job.timeout_us // 1000,
        "enabled": job.is_enabled,
        "running_since": (job.started_at or job.claimed_at) if state is JobState.RUNNING else None,
        "next_retry_at": job.run_at if is_queued and job.wait_reason in RETRIED else None,
        "correlation_id": job.correlation_id or str(job_uuid(job.id)),
        "parent_id": None if job.parent_id is None else job_uuid(job.parent_id),
        "item_key": rules.hide(job.item_key),
        **_source(job, payload),
        **_attempts(job, rules.profiles),
        **_schedule(job),
    }


def _completed_at(job: Job) -> datetime | None:
    if job.state in {JobState.COMPLETED, JobState.FAILED}:
        return job.closed_at
    return job.finished_at if job.cadence is not None else None


def _source(job: Job, payload: dict[str, Any]) -> dict[str, Any]:
    """Show what a crawl is of; other tasks may have anything under these names."""
    given = payload if job.task == CRAWL else {}
    name, url = given.get("source_name"), given.get("url")
    return {
        "source_id": job.subject,
        "source_name": name if isinstance(name, str) else None,
        "url": url if isinstance(url, str) else None,
    }


def _attempts(job: Job, profiles: Mapping[str, Profile]) -> dict[str, Any]:
    spec = RetrySpec.decode(job.retry)
    seconds = spec.resolve(profiles).base / _SECOND
    most = job.max_attempts or profiles[spec.profile].max_attempts
    return {
        "attempts": job.attempt,
        "max_attempts": most,
        "max_retries": most - 1,
        "retry_backoff_seconds": int(seconds) if seconds.is_integer() else seconds,
        "current_retry_count": max(job.attempt - 1, 0) if _has_run_unfailed(job) else job.attempt,
    }


def _has_run_unfailed(job: Job) -> bool:
    """Whether the last attempt goes on, went well, or was ended by a cancel."""
    was_stopped = job.state is JobState.CANCELLED and job.finished_at == job.closed_at
    return job.state in _UNFAILED or was_stopped


def _schedule(job: Job) -> dict[str, Any]:
    rule = _rule(job)
    number, unit = shown_interval(rule) or (None, None)
    return {
        "interval_minutes": number,
        "interval_type": unit,
        "schedule_time": rule.cadence.expression if rule is not None and isinstance(rule.cadence, Cron) else None,
        "schedule_enabled": job.cadence is not None and job.is_enabled,
        "cadence": job.cadence if rule is None else str(rule.cadence),
        "timezone": None if rule is None else rule.timezone,
        "fixed_rate": rule is not None and rule.fixed_rate,
        "start_at": None if rule is None else rule.start_at,
    }


def _rule(job: Job) -> Recurrence | None:
    try:
        return job.recurrence
    except InvalidInput:
        # Shown as it is: one row that cannot be read must not hide the others.
        return None


def token_digest(token: int) -> UUID:
    """Return a digest of a lease's token."""
    return UUID(bytes=sha256(f"lease:{token}".encode()).digest()[:16], version=5)
