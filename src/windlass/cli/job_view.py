"""A job as people read it: what it is, how it went, why it failed, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from windlass.cli.output import document_text, say_table
from windlass.core.cadence_text import describe
from windlass.core.durations import in_words
from windlass.core.ids import job_uuid
from windlass.core.job import DeadLetter, Execution, Job, JobState, RunStatus, WaitReason
from windlass.core.one_line import one_line
from windlass.core.retry import Profile, most_attempts
from windlass.errors import InvalidInput

_RUN_COLUMNS = ("number", "attempt", "status", "reason", "started_at", "took", "worker", "error")
_MILLISECOND = timedelta(milliseconds=1)
_BIDDEN = {
    WaitReason.OPERATOR: "by hand",
    WaitReason.DELAY: "delayed",
    WaitReason.RETRY: "to be tried again",
    WaitReason.LOST: "its worker was lost",
    WaitReason.SNOOZE: "snoozed by its handler",
    WaitReason.RELEASED: "given back by its worker",
    WaitReason.RECURRENCE: "for its next time",
}


def show_job(job: Job, runs: Sequence[Execution], letters: Sequence[DeadLetter], profiles: Mapping[str, Profile]) -> None:
    """Print a job with its newest runs."""
    _show(_facts(job, profiles))
    newest = runs[0] if runs else None
    if newest is not None and newest.result is not None:
        _show_block("result", _document(newest.result).splitlines())
    _show_error(job, newest)
    if newest is not None and newest.log_excerpt:
        _show_block("log", newest.log_excerpt.splitlines())
    if runs:
        _show_block("runs", ())
        say_table((_run(run) for run in runs), _RUN_COLUMNS)
    _show_block("next", _advice(job, letters))


def show_letter(letter: DeadLetter) -> None:
    """Print a dead letter with its traceback and the job as it was."""
    details = {} if letter.details is None else json.loads(letter.details)
    original = letter.original()
    acknowledged = None if letter.acknowledged_at is None else f"{moment(letter.acknowledged_at)} by {letter.acknowledged_by}"
    closed = None if letter.closed_at is None else f"{moment(letter.closed_at)}: {letter.closed_reason}"
    worker, attempt = details.get("worker"), details.get("attempt")
    _show(
        {
            "dead letter": letter.id,
            "job": letter.job_id,
            "task": letter.task,
            "lane": letter.lane,
            "died": moment(letter.died_at) + (f" ({letter.deaths} deaths)" if letter.deaths > 1 else ""),
            "attempt": attempt,
            "worker": worker,
            "error": _titled(letter.error, details.get("type")),
            "fingerprint": letter.fingerprint,
            "payload": document_text(original.get("payload")),
            "correlation id": original["correlation_id"],
            "acknowledged": acknowledged,
            "note": letter.note,
            "closed": closed,
        }
    )
    if details.get("stack_trace"):
        _show_block("traceback", str(details["stack_trace"]).splitlines())
    is_open = letter.closed_at is None
    seen = [f"windlass dead acknowledge {letter.id}"] if is_open and letter.acknowledged_at is None else []
    again = [f"windlass dead requeue {letter.id}"] if is_open else []
    _show_block("next", [*again, *seen, f"windlass job {letter.job_id}"])


def moment(at: datetime) -> str:
    """Write an instant with its zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _facts(job: Job, profiles: Mapping[str, Profile]) -> dict[str, Any]:
    priority = f"{job.priority}" + (f" (base {job.base_priority})" if job.priority != job.base_priority else "")
    is_waiting = job.state in {JobState.PENDING, JobState.SCHEDULED}
    return {
        "job": job.id,
        "task": job.task,
        "state": _state(job),
        "lane": job.lane,
        "priority": priority if job.priority or job.base_priority else None,
        "name": job.name,
        "when": _cadence(job),
        "subject": job.subject,
        "description": job.description,
        "attempts": f"{job.attempt} of {most_attempts(job.max_attempts, job.retry, profiles)}",
        "crashes": job.crashes or None,
        "due": moment(job.run_at) if is_waiting else None,
        "started": None if job.started_at is None else moment(job.started_at),
        "finished": _finished(job),
        "worker": job.worker,
        "lease until": None if job.lease_expires_at is None else moment(job.lease_expires_at),
        "timeout": None if job.timeout_us is None else in_words(timedelta(microseconds=job.timeout_us)),
        "progress": _progress(job),
        "cursor": job.last_cursor,
        "payload": job.payload if job.payload != "{}" else None,
        "metadata": job.metadata if job.metadata != "{}" else None,
        "unique key": job.unique_key,
        "correlation id": job.correlation_id or str(job_uuid(job.id)),
        "parent": job.parent_id,
        "created": moment(job.created_at) + (f" by {job.created_by}" if job.created_by else ""),
        "declared by": job.declared_by,
    }


def _state(job: Job) -> str:
    notes = [_BIDDEN[job.wait_reason]] if job.wait_reason in _BIDDEN else []
    if job.state is JobState.CANCELLED and job.cancel_reason not in {None, "cancelled"}:
        notes.append(str(job.cancel_reason))
    elif job.state in {JobState.COMPLETED, JobState.FAILED} and job.done_reason:
        notes.append(job.done_reason.replace("_", " "))
    if job.held:
        notes.append("to be paused after its run")
    if job.stop_requested:
        notes.append("asked to stop")
    return f"{job.state.value} ({', '.join(notes)})" if notes else job.state.value


def _cadence(job: Job) -> str | None:
    try:
        rule = job.recurrence
    except InvalidInput:
        return "cannot be read"
    return None if rule is None else describe(rule.cadence, rule.timezone)


def _finished(job: Job) -> str | None:
    # A job that runs once more has the end of the run before.
    if job.finished_at is None or job.state is JobState.RUNNING:
        return None
    is_last = job.started_at is not None and job.finished_at >= job.started_at
    took = f" after {in_words(job.finished_at - job.started_at)}" if is_last and job.started_at is not None else ""
    return f"{moment(job.finished_at)}{took}"


def _progress(job: Job) -> str | None:
    if not (job.progress_count or job.result_count or job.target_count or job.progress_message):
        return None
    target = "" if job.target_count is None else f" of {job.target_count}"
    message = f": {job.progress_message}" if job.progress_message else ""
    return f"{job.progress_count} seen, {job.result_count}{target} new{message}"


def _run(run: Execution) -> dict[str, Any]:
    took = None if run.finished_at is None else in_words((run.finished_at - run.started_at) // _MILLISECOND * _MILLISECOND)
    return {column: getattr(run, column, None) for column in _RUN_COLUMNS} | {"took": took}


def _show_error(job: Job, newest: Execution | None) -> None:
    if newest is not None and newest.error is not None and newest.status is RunStatus.FAILED:
        _show_block("error", [_titled(newest.error, newest.error_type), *(newest.stack_trace or "").splitlines()])
    elif job.last_error is not None and job.state is not JobState.CANCELLED:
        _show_block("error", job.last_error.splitlines())


def _titled(error: str, kind: str | None) -> str:
    """Name the kind of an error before its text, unless the text begins with it."""
    return error if not kind or error.startswith(kind) else f"{kind}: {error}"


def _document(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


def _advice(job: Job, letters: Sequence[DeadLetter]) -> Iterator[str]:
    match job.state:
        case JobState.FAILED:
            yield f"windlass retry {job.id}"
            yield from (f"windlass dead show {letter.id}" for letter in letters if letter.closed_at is None)
        case JobState.CANCELLED | JobState.COMPLETED:
            yield f"windlass clone {job.id}"
        case JobState.PAUSED:
            yield f"windlass resume {job.id}"
        case JobState.SCHEDULED:
            yield f"windlass run-now {job.id}"
            yield f"windlass cancel {job.id}"
        case JobState.PENDING:
            yield f"windlass boost {job.id}"
            yield f"windlass cancel {job.id}"
        case JobState.RUNNING:
            yield f"windlass cancel {job.id}"


def _show(facts: Mapping[str, Any]) -> None:
    shown = {name: one_line(str(value)) for name, value in facts.items() if value not in (None, "")}
    width = max(map(len, shown))
    for name, text in shown.items():
        click.echo(f"{name:<{width}}  {text}")


def _show_block(title: str, lines: Sequence[str] | Iterator[str]) -> None:
    click.echo(f"\n{title}")
    for line in lines:
        click.echo(f"  {one_line(line)}".rstrip())
