"""The verbs of pull workers over HTTP, each described once; every one of them may be sent twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from windlass.core.job import JobState
from windlass.core.record import record
from windlass.http_client.ask import Ask, as_one, get, post


@record(kw_only=True)
class PulledJob:
    """A job to be worked on, and what earlier runs left behind."""

    id: int
    task: str
    lane: str
    payload: Mapping[str, Any]
    attempt_id: str
    """What shows that the job is ours: sent with every report and heartbeat."""
    attempts: int
    max_attempts: int
    last_cursor: str | None = None
    target_count: int | None = None
    progress_count: int = 0
    result_count: int = 0
    timeout_sec: float | None = None
    subject: str | None = None
    correlation_id: str | None = None
    parent_id: int | None = None
    slot_at: datetime | None = None
    execution: int = 1
    consecutive_failures: int = 0
    pulled_at: datetime
    traceparent: str | None = None


@record(kw_only=True)
class Pulled:
    """A job with its lease, or none."""

    job: PulledJob | None
    lease_expires_at: datetime | None = None
    stopped: bool = False
    """Whether no job will come until a lane is resumed."""


@record(kw_only=True)
class ReportDone:
    """What a report did."""

    added: int
    duplicates: int
    done: bool
    should_stop: bool = False
    state: JobState = JobState.RUNNING
    """Where the job stands after it."""


@record(kw_only=True)
class Renewed:
    """Until when a job is held, and whether to go on."""

    lease_expires_at: datetime
    should_stop: bool


@record(kw_only=True)
class PulledJobStatus:
    """The status of a job, by the pull API's names."""

    status: str
    should_stop: bool
    reason: str | None = None


def pull(*, lanes: Sequence[str], tasks: Sequence[str], pull_id: str, wait_s: float, lease_s: float) -> Ask[Pulled]:
    """Take one job, waiting for it if asked to; the same `pull_id` gives the same lease again."""
    body = {"lanes": list(lanes), "tasks": list(tasks), "pull_id": pull_id, "wait": wait_s, "lease_sec": int(lease_s)}
    return post("/api/pull_job", as_one(Pulled), body, is_repeatable=True)


def report(job_id: int, attempt_id: str, *, key: str, **fields: Any) -> Ask[ReportDone]:
    """Report something about a run; `key` names the report, so that sending it twice counts once."""
    body = {"job_id": job_id, "attempt_id": attempt_id, "idempotency_key": key, **fields}
    return post("/api/report_results", as_one(ReportDone), body, is_repeatable=True)


def heartbeat(job_id: int, attempt_id: str, extend_s: float) -> Ask[Renewed]:
    """Renew a job's lease; the answer has whether to stop."""
    body = {"job_id": job_id, "attempt_id": attempt_id, "extend_lease_sec": extend_s}
    return post("/api/heartbeat", as_one(Renewed), body, is_repeatable=True)


def job_status(job_id: int) -> Ask[PulledJobStatus]:
    """Ask how a job stands."""
    return get("/api/job_status", as_one(PulledJobStatus), {"job_id": job_id})
