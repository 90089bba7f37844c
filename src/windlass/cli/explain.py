"""`windlass explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli import options
from windlass.cli.output import plain, say_json
from windlass.cli.session import operating
from windlass.core.explanation import Check, Explanation, FailureFacts, counted, lasting, moment
from windlass.core.one_line import one_line

if TYPE_CHECKING:
    from windlass.client.operations import Operator

_MARKS = {True: "ok", False: "no", None: "?"}
_GATE_WIDTH = 10


@click.command()
@click.argument("job_id", metavar="[JOB]", required=False)
@click.option("--lane", metavar="NAME", help="Explain a lane in place of a job.")
@click.option("--task", metavar="NAME", help="Explain a task in place of a job.")
@options.as_json
@options.database
def explain(job_id: str | None, *, lane: str | None, task: str | None, as_json: bool, database: str | None) -> None:
    """Explain why a job does not run, or why it ran when it did: every gate that was checked, and what to type first."""
    if sum(one is not None for one in (job_id, lane, task)) != 1:
        raise click.UsageError("name one thing to explain: a job by its number or UUID, --lane NAME or --task NAME")
    with operating(database) as operator:
        found = _explained(operator, job_id, lane, task)
    if as_json:
        say_json(plain(found))
    else:
        _show(found)


def _explained(operator: Operator, job_id: str | None, lane: str | None, task: str | None) -> Explanation:
    if lane is not None:
        return operator.lanes.explain_sync(lane)
    if task is not None:
        return operator.known_tasks.explain_sync(task)
    return operator.explain_sync(job_id or "")


def _show(found: Explanation) -> None:
    _line(f"{found.subject} {found.name}: {found.verdict.value}")
    _line(found.sentence)
    if found.command is not None:
        click.echo()
        _line(f"do: {found.command}")
    if found.position is not None:
        _line(f"place in its lane: {'' if found.is_position_exact else 'after more than '}{found.position}")
    if found.estimated_start_at is not None and found.estimated_start_at > found.read_at:
        wait = lasting(found.estimated_start_at - found.read_at)
        _line(f"starts about {moment(found.estimated_start_at)}, in {wait}")
    click.echo("\nchecked")
    for check in found.details:
        _line(_checked(check))
    if found.failure is not None:
        click.echo("\nfailures of this kind")
        for name, value in _failure(found.failure).items():
            _line(f"  {name:<16}{value}")


def _line(text: str) -> None:
    """Print a line; names and errors in it are text of others."""
    click.echo(one_line(text))


def _checked(check: Check) -> str:
    return f"  {_MARKS[check.passed]:<4}{check.gate:<{_GATE_WIDTH}}{check.reason}"


def _failure(failure: FailureFacts) -> dict[str, Any]:
    number = f"{failure.deaths}" if failure.is_deaths_exact else f"more than {failure.deaths}"
    rows = {
        "error": failure.error,
        "its own runs": f"{failure.failed_runs} failed, {failure.same_error_runs} of them in this way",
        "deaths": number if failure.deaths else None,
        "first": None if failure.first_at is None else moment(failure.first_at),
        "last": None if failure.last_at is None else moment(failure.last_at),
        "came back": f"{counted(failure.came_back, 'job')}: {failure.succeeded} completed, {failure.failed_again} failed again",
        "since the last": f"{counted(failure.completed_since, 'run')} of the task completed, {failure.failed_since} failed",
        "a retry": f"{failure.retry.value}: {failure.because}",
        "fingerprint": failure.fingerprint,
    }
    return {name: value for name, value in rows.items() if value is not None}
