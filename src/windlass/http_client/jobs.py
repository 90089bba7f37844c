"""The verbs of jobs, each described once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from windlass.core.durations import Duration
from windlass.core.explanation import Explanation
from windlass.core.job import CommonOptions, JobState
from windlass.core.job_verbs import JOB_VERBS
from windlass.errors import InvalidInput
from windlass.http_client import records
from windlass.http_client.ask import API, Ask, JobRef, as_one, get, job_path, plain, post

_REPEATABLE = (None, "ignore", "replace")
Sort = Literal["created_at", "updated_at", "run_at", "next_run_at", "priority", "completed_at", "state", "status"]


class EnqueueOptions(CommonOptions, total=False):
    """The options of one enqueue."""

    max_retries: int
    name: str
    """Of a recurring job; no two have the same."""
    every: Duration
    cron: str
    timezone: str
    fixed_rate: bool
    start_at: datetime
    unique_scope: Literal["pending", "active", "forever"]
    on_conflict: Literal["ignore", "replace", "rerun", "reject"]


class JobForm(EnqueueOptions, total=False):
    """A job of `enqueue_many`."""

    task: str
    payload: Mapping[str, Any]


class RemoteJobFilter(TypedDict, total=False):
    """Which jobs a list shows; what is left out asks for nothing."""

    status: JobState | str | Sequence[JobState | str]
    """One or several, by the interval scheduler's names."""
    task: str
    lane: str
    source_id: str
    """The subject."""
    search: str
    correlation_id: str
    since: datetime
    priority: int
    worker: str
    """The one that runs them now."""
    error: str
    """Found in the last error."""
    sort_by: Sort
    sort_order: Literal["asc", "desc"]


def enqueue(task: str, payload: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]) -> Ask[records.RemoteJob]:
    """Enqueue a job; returns after its commit. With a unique key it is sent again when the connection breaks."""
    form = JobForm(task=task, payload=payload or {}, **options)
    return post(f"{API}/jobs", as_one(records.RemoteJob), _form(form), is_repeatable=_is_repeatable(form))


def enqueue_many(jobs: Iterable[JobForm]) -> Ask[records.BulkEnqueued]:
    """Enqueue up to 10,000 jobs in one transaction, all or none."""
    forms = list(jobs)
    is_repeatable = all(map(_is_repeatable, forms))
    return post(f"{API}/jobs/bulk", as_one(records.BulkEnqueued), {"jobs": list(map(_form, forms))}, is_repeatable=is_repeatable)


def _form(form: JobForm) -> dict[str, Any]:
    unknown = form.keys() - JobForm.__annotations__.keys()
    if unknown:
        raise InvalidInput(min(unknown), form.get(min(unknown)), "is not an option of a job")
    return {name: plain(value) for name, value in form.items() if value is not None}


def _is_repeatable(form: JobForm) -> bool:
    return form.get("unique_key") is not None and form.get("on_conflict") in _REPEATABLE


def get_job(job: JobRef) -> Ask[records.RemoteJob]:
    """Read a job with the result of its newest run; raises JobNotFound."""
    return get(job_path(job), as_one(records.RemoteJob))


def explain(job: JobRef) -> Ask[Explanation]:
    """Read why a job does not run, or why it ran when it did; raises JobNotFound."""
    return get(f"{job_path(job)}/explain", as_one(Explanation))


def page(*, limit: int = 50, cursor: str | None = None, **wanted: Unpack[RemoteJobFilter]) -> Ask[records.JobPage]:
    """Read a page of jobs, newest first by default."""
    query: dict[str, Any] = {**wanted, "limit": limit, "cursor": cursor}
    status = wanted.get("status")
    if status is not None:
        query["status"] = status if isinstance(status, str) else ",".join(status)
    return get(f"{API}/jobs", as_one(records.JobPage), query)


def cancel(job: JobRef, reason: str | None = None) -> Ask[records.RemoteJob]:
    """Cancel a job at once; a late success of a running one is refused."""
    return post(job_path(job, "cancel"), as_one(records.RemoteJob), {"reason": reason})


def move(name: str) -> Callable[[JobRef], Ask[records.RemoteJob]]:
    """Describe a verb of operators that needs nothing but the job."""

    def describe(job: JobRef) -> Ask[records.RemoteJob]:
        return post(job_path(job, name.replace("_", "-")), as_one(records.RemoteJob))

    describe.__name__ = describe.__qualname__ = name
    describe.__doc__ = JOB_VERBS[name].summary
    return describe


def delete(job: JobRef) -> Ask[records.RemoteJob]:
    """Remove a job that is not leased; the answer is the job as it was."""
    return Ask(method="DELETE", path=job_path(job), read=as_one(records.RemoteJob))


def execution_page(job: JobRef, *, limit: int = 50, offset: int = 0) -> Ask[records.ExecutionPage]:
    """Read some runs of a job, the one that goes on first, then newest first."""
    return get(job_path(job, "executions"), as_one(records.ExecutionPage), {"limit": limit, "offset": offset})


def stats(job: JobRef) -> Ask[records.RemoteJobStats]:
    """Sum up the kept runs of one job."""
    return get(job_path(job, "stats"), as_one(records.RemoteJobStats))


def queue_stats() -> Ask[records.RemoteQueueStats]:
    """Sum up the queue."""
    return get(f"{API}/queue/stats", as_one(records.RemoteQueueStats))


def metrics() -> Ask[records.Metrics]:
    """Sum up the scheduler."""
    return get(f"{API}/scheduler/metrics", as_one(records.Metrics))
