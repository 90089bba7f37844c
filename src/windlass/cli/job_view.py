"""A job as people read it: what it is, how it went, why it failed, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import click

from windlass.cli.output import document_text, say_table
from windlass.cli.terminal import is_terminal
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
    if is_terminal():
        from windlass.cli.job_page import draw_job  # noqa: PLC0415 - loads what draws, which scripts do without

        draw_job(job, runs, letters, profiles)
        return
    _show(facts(job, profiles, moment))
    newest = runs[0] if runs else None
    if newest is not None and newest.result_json is not None:
        _show_block("result", document_lines(newest.result_json))
    if error := error_lines(job, newest):
        _show_block("error", error)
    if newest is not None and newest.log_excerpt:
        _show_block("log", newest.log_excerpt.splitlines())
    if runs:
        _show_block("runs", ())
        say_table((_run(run) for run in runs), _RUN_COLUMNS)
    _show_block("next", [one.command for one in advice(job, letters)])


def show_letter(letter: DeadLetter) -> None:
    """Print a dead letter with its traceback and the job as it was."""
    details = letter.details or {}
    original = letter.original_job
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
            "version": letter.version,
            "payload": document_text(original.get("payload")),
            "comes back with": letter.edited_payload_json,
            "edited": None if letter.edited_at is None else f"{moment(letter.edited_at)} by {letter.edited_by}",
            "correlation id": original["correlation_id"],
            "acknowledged": acknowledged,
            "note": letter.note,
            "closed": closed,
        }
    )
    if notes := letter.notes:
        _show_block("notes", [f"{moment(one.at)} {one.by}: {one.text}" for one in notes])
    if details.get("stack_trace"):
        _show_block("traceback", str(details["stack_trace"]).splitlines())
    is_open = letter.closed_at is None
    seen = [f"windlass dead acknowledge {letter.id}"] if is_open and letter.acknowledged_at is None else []
    again = [f"windlass dead requeue {letter.id}"] if is_open else []
    _show_block("next", [*again, *seen, f"windlass job {letter.job_id}"])


def moment(at: datetime) -> str:
    """Write an instant with its zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def facts(job: Job, profiles: Mapping[str, Profile], moment: Callable[[datetime], str]) -> dict[str, Any]:
    """Return the facts of a job by the names that people read; a missing one is None."""
    priority = f"{job.priority}" + (f" (base {job.base_priority})" if job.priority != job.base_priority else "")
    is_waiting = job.state in {JobState.PENDING, JobState.SCHEDULED}
    return {
        "job": job.id,
        "task": job.task,
        "state": state_text(job),
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
        "finished": _finished(job, moment),
        "worker": job.worker,
        "lease until": None if job.lease_expires_at is None else moment(job.lease_expires_at),
        "timeout": None if job.timeout_us is None else in_words(timedelta(microseconds=job.timeout_us)),
        "progress": _progress(job),
        "cursor": job.last_cursor,
        "payload": job.payload_json if job.payload_json != "{}" else None,
        "metadata": job.metadata_json if job.metadata_json != "{}" else None,
        "unique key": job.unique_key,
        "correlation id": job.correlation_id or str(job_uuid(job.id)),
        "parent": job.parent_id,
        "created": moment(job.created_at) + (f" by {job.created_by}" if job.created_by else ""),
        "declared by": job.declared_by,
    }


def state_text(job: Job) -> str:
    """Write a job's state, with why it is in it."""
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


def _finished(job: Job, moment: Callable[[datetime], str]) -> str | None:
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
    return {column: getattr(run, column, None) for column in _RUN_COLUMNS} | {"took": took(run)}


def took(run: Execution) -> str | None:
    """Write how long a run took, if it has ended."""
    return None if run.finished_at is None else in_words((run.finished_at - run.started_at) // _MILLISECOND * _MILLISECOND)


def error_lines(job: Job, newest: Execution | None) -> list[str]:
    """Return the last error with its traceback; none where the job went well or was cancelled since."""
    if newest is not None and newest.error is not None and newest.status is RunStatus.FAILED:
        return [_titled(newest.error, newest.error_type), *(newest.stack_trace or "").splitlines()]
    if job.last_error is not None and job.state is not JobState.CANCELLED:
        return job.last_error.splitlines()
    return []


def _titled(error: str, kind: str | None) -> str:
    """Name the kind of an error before its text, unless the text begins with it."""
    return error if not kind or error.startswith(kind) else f"{kind}: {error}"


def document_lines(text: str) -> list[str]:
    """Lay a JSON text out over lines."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2).splitlines()
    except ValueError:
        return text.splitlines()


class Advice(NamedTuple):
    """A command that fits the state a job is in, and what it does."""

    command: str
    effect: str


def advice(job: Job, letters: Sequence[DeadLetter]) -> list[Advice]:
    """List what to do next, the likeliest first."""
    number, cancel = job.id, Advice(f"windlass cancel {job.id}", "give it up")
    match job.state:
        case JobState.FAILED:
            read = [Advice(f"windlass dead show {one.id}", "read its dead letter") for one in letters if one.closed_at is None]
            return [Advice(f"windlass retry {number}", "run it again, with all its attempts"), *read]
        case JobState.CANCELLED | JobState.COMPLETED:
            return [Advice(f"windlass clone {number}", "make a new job like it")]
        case JobState.PAUSED:
            return [Advice(f"windlass resume {number}", "let it go on")]
        case JobState.SCHEDULED:
            return [Advice(f"windlass run-now {number}", "do not wait for its time"), cancel]
        case JobState.PENDING:
            return [Advice(f"windlass boost {number}", "let it run before others"), cancel]
        case JobState.RUNNING:
            return [Advice(f"windlass logs {number} --follow", "read its log until it ends"), cancel]


def _show(known: Mapping[str, Any]) -> None:
    shown = {name: one_line(str(value)) for name, value in known.items() if value not in (None, "")}
    width = max(map(len, shown))
    for name, text in shown.items():
        click.echo(f"{name:<{width}}  {text}")


def _show_block(title: str, lines: Sequence[str]) -> None:
    click.echo(f"\n{title}")
    for line in lines:
        click.echo(f"  {one_line(line)}".rstrip())
