"""`windlass jobs` and `windlass job`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.job_view import advice, show_job
from windlass.cli.names import hint_at_unknown
from windlass.cli.output import job_fields, letter_fields, plain, say, say_json, say_table
from windlass.cli.session import operating
from windlass.client.operations import Operator
from windlass.core.filter import JobFilter
from windlass.core.job import DeadLetter, Execution, Job
from windlass.core.page import JobQuery, Sort

COLUMNS = ("id", "task", "lane", "state", "wait_reason", "priority", "attempt", "run_at", "subject", "last_error")
_SPARE = ("priority", "wait_reason", "attempt", "subject", "lane")
_COUNTED = frozenset({"items_crawled", "items_indexed"})


@click.command()
@options.job_filters
@click.option("--sort", type=click.Choice([sort.value for sort in Sort]), default="created_at", show_default=True)
@click.option("--oldest-first", is_flag=True, help="In ascending order.")
@options.limit
@click.option("--offset", type=click.IntRange(0, 10_000), default=0, help="How many to leave out.")
@click.option("--cursor", help="Where the page before ended.")
@options.listing
@options.database
def jobs(wanted: JobFilter, *, sort: str, oldest_first: bool, as_json: bool, database: str | None, **place: Any) -> None:
    """List jobs, newest first."""
    query = JobQuery(filter=wanted, sort=Sort(sort), is_descending=not oldest_first, **place)
    with operating(database) as operator:
        page = operator.list_sync(query)
        if not page.total:
            hint_at_unknown(operator, wanted.tasks, wanted.lanes)
    if as_json:
        say_json(
            {
                "jobs": [job_fields(one) for one in page.jobs],
                "total": page.total,
                "is_total_exact": page.is_total_exact,
                "next_cursor": page.next_cursor,
            }
        )
        return
    say_table(({column: getattr(one, column) for column in COLUMNS} for one in page.jobs), COLUMNS, spare=_SPARE)
    say(f"{len(page.jobs)} of {page.total if page.is_total_exact else f'at least {page.total}'}")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


@click.command()
@click.argument("job_id", metavar="ID")
@click.option("--runs", type=click.IntRange(0, 500), default=10, show_default=True, help="How many runs to show.")
@options.as_json
@options.database
def job(job_id: str, *, runs: int, as_json: bool, database: str | None) -> None:
    """Show a job, by its number or UUID, with its newest runs, result, error and log, and what to do next."""
    with operating(database) as operator:
        found, executions, letters = read_job(operator, job_id, runs=runs)
    if as_json:
        say_json(
            {
                **job_fields(found),
                "runs": [_run_fields(run) for run in executions],
                "dead_letters": [letter_fields(one) for one in letters],
                "next": [one.command for one in advice(found, letters)],
            }
        )
    else:
        show_job(found, executions, letters, Windlass(database).settings.profiles)


def read_job(operator: Operator, job_id: str, *, runs: int) -> tuple[Job, Sequence[Execution], Sequence[DeadLetter]]:
    """Read a job with its newest runs and its dead letters."""
    found = operator.get_sync(job_id)
    executions = operator.executions_sync(found, limit=runs) if runs else []
    return found, executions, operator.dead_letters_of_sync(found)


def _run_fields(run: Execution) -> dict[str, Any]:
    """Return a run's fields for JSON; what only crawls and feeds count is there when it was counted."""
    fields = plain(run) | {"duration_ms": run.duration_ms}
    return {name: value for name, value in fields.items() if name not in _COUNTED or value is not None}
