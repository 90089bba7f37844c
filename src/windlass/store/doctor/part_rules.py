"""The rules of the rows that belong to a job: its body, its runs, its dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from windlass.core import payload
from windlass.core.job import RunReason, RunStatus
from windlass.errors import InvalidInput
from windlass.store.doctor.rule import BrokenRule, Rule


class BodyRow(NamedTuple):
    """What a job is."""

    job_id: int
    payload: str
    metadata: str | None
    item_key: str | None
    has_job: bool


class ExecutionRow(NamedTuple):
    """A run that has ended."""

    job_id: int
    number: int
    attempt: int
    wait_ms: int
    status: str
    reason: str | None
    finished_after_start: bool
    is_json: bool
    has_job: bool


class LetterRow(NamedTuple):
    """A dead letter."""

    id: int
    job_id: int
    deaths: int
    has_acknowledged_at: bool
    has_acknowledged_by: bool
    has_closed_at: bool
    closed_reason: str | None
    died_after_first: bool
    is_json: bool
    has_job: bool


_LETTER_ENDS = frozenset({"requeued", "retried", "succeeded", "overridden"})
_REASONS: dict[str, frozenset[str | None]] = {
    RunStatus.COMPLETED: frozenset({None}),
    RunStatus.FAILED: frozenset(
        {RunReason.ERROR, RunReason.TIMED_OUT, RunReason.LEASE_EXPIRED, RunReason.WORKER_CRASHED},
    ),
    RunStatus.CANCELLED: frozenset(
        {RunReason.RELEASED, RunReason.SNOOZED, RunReason.CANCELLED, RunReason.STOPPED, RunReason.SUPERSEDED},
    ),
}

EXECUTION_RULES = (
    Rule("execution_job", lambda run: run.has_job, "execution {row.number} of no job"),
    Rule("execution_status", lambda run: run.status in _REASONS, "execution {row.number} has status {row.status!r}"),
    Rule(
        "execution_reason",
        lambda run: run.status not in _REASONS or run.reason in _REASONS[run.status],
        "execution {row.number} is {row.status} with reason {row.reason!r}",
    ),
    Rule(
        "execution_number",
        lambda run: run.number >= 1 and 0 <= run.attempt <= run.number and run.wait_ms >= 0,
        "execution {row.number} has attempt {row.attempt} and wait_ms {row.wait_ms}",
    ),
    Rule("execution_times", lambda run: run.finished_after_start, "execution {row.number} ends before it starts"),
    Rule("execution_json", lambda run: run.is_json, "execution {row.number} has metadata or a result that is not JSON"),
)

LETTER_RULES = (
    # Retention lets a letter that was acknowledged or closed outlive its job.
    Rule(
        "letter_job",
        lambda letter: letter.has_job or letter.has_acknowledged_at or letter.has_closed_at,
        "letter {row.id} is open and of no job",
    ),
    Rule(
        "letter_acknowledged",
        lambda letter: letter.has_acknowledged_at == letter.has_acknowledged_by,
        "letter {row.id} has half an acknowledgement",
    ),
    Rule(
        "letter_closed",
        lambda letter: letter.closed_reason in _LETTER_ENDS if letter.has_closed_at else letter.closed_reason is None,
        "letter {row.id} has closed_reason {row.closed_reason!r}",
    ),
    Rule("letter_deaths", lambda letter: letter.deaths >= 1 and letter.died_after_first, "letter {row.id} has impossible deaths"),
    Rule("letter_json", lambda letter: letter.is_json, "letter {row.id} holds a document that is not JSON"),
)


def check_body(body: BodyRow) -> Iterator[BrokenRule]:
    """Report every rule that a body breaks."""
    if not body.has_job:
        yield BrokenRule("body_job", body.job_id, "a body of no job")
    try:
        if not isinstance(payload.decode_request(body.payload), dict):
            yield BrokenRule("payload", body.job_id, "payload is not a JSON object")
        for field in ("metadata", "item_key"):
            if (text := getattr(body, field)) is not None:
                payload.decode_request(text, field=field)
    except InvalidInput as error:
        yield BrokenRule("payload", body.job_id, str(error))
