"""A job as the result of a Django task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windlass.core.ids import job_uuid
from windlass.core.job import CLOSED, Execution, Job, JobState, RunReason, RunStatus
from windlass.django.payload import arguments_of
from windlass.django.tasks_api import TaskError, TaskResult, TaskResultStatus

STATUS = {
    JobState.SCHEDULED: TaskResultStatus.READY,
    JobState.PENDING: TaskResultStatus.READY,
    JobState.PAUSED: TaskResultStatus.READY,
    JobState.RUNNING: TaskResultStatus.RUNNING,
    JobState.COMPLETED: TaskResultStatus.SUCCESSFUL,
    JobState.FAILED: TaskResultStatus.FAILED,
    JobState.CANCELLED: TaskResultStatus.FAILED,
}
_WITHOUT_EXCEPTION = {
    RunReason.TIMED_OUT: "builtins.TimeoutError",
    RunReason.LEASE_EXPIRED: "windlass.errors.LeaseLost",
    RunReason.WORKER_CRASHED: "windlass.errors.LeaseLost",
    RunReason.CANCELLED: "windlass.errors.JobCancelled",
}
"""What stands for an end that no exception of the task has brought."""
_UNTOLD = frozenset({RunReason.RELEASED, RunReason.SNOOZED, RunReason.SUPERSEDED})
"""Ends that are no errors: the job comes back without having lost a try."""


def result_id(job_id: int) -> str:
    """Write a job's number as the id of a result."""
    return str(job_uuid(job_id))


def result_of(task: Any, job: Job, executions: Sequence[Execution], *, backend: str) -> Any:
    """Describe a job as Django does; `executions` are its runs, newest first."""
    runs = [run for run in reversed(executions) if run.reason not in _UNTOLD]
    args, kwargs = arguments_of(job.payload)
    result = TaskResult(
        task=task,
        id=result_id(job.id),
        status=STATUS[job.state],
        enqueued_at=job.created_at,
        started_at=runs[0].started_at if runs else None,
        finished_at=job.closed_at or job.finished_at if job.state in CLOSED else None,
        last_attempted_at=runs[-1].started_at if runs else None,
        args=args,
        kwargs=kwargs,
        backend=backend,
        errors=[_error(run) for run in runs if run.status in {RunStatus.FAILED, RunStatus.CANCELLED}],
        worker_ids=[run.worker for run in runs],
    )
    if job.state is JobState.COMPLETED and runs and runs[-1].result_json is not None:
        # The record is frozen, and this is how Django's own backends set its value.
        object.__setattr__(result, "_return_value", runs[-1].result)
    return result


def _error(run: Execution) -> Any:
    told = None if run.reason is None else _WITHOUT_EXCEPTION.get(run.reason)
    trace = run.stack_trace or f"{run.error or run.reason or 'failed'}\n"
    return TaskError(exception_class_path=told or _exception_path(run, trace), traceback=trace)


def _exception_path(run: Execution, trace: str) -> str:
    """Find where an exception's class is: its name is kept with the run, its module stands in the trace."""
    name = run.error_type or "Exception"
    for line in reversed(trace.splitlines()):
        path = line.partition(":")[0]
        if path.rpartition(".")[2] == name and " " not in path:
            return path if "." in path else f"builtins.{name}"
    return f"builtins.{name}"
