"""`windlass schedules`: recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from windlass.cli import completing, options
from windlass.cli.names import hint_at_unknown
from windlass.cli.noun import NounGroup
from windlass.cli.output import job_fields, plain, say, say_fields, say_json, say_table
from windlass.cli.session import operating
from windlass.core.blocking import run
from windlass.core.cadence import Recurrence, parse_cadence
from windlass.core.cadence_text import describe
from windlass.core.durations import parse_duration
from windlass.core.filter import JobFilter
from windlass.core.job import Job
from windlass.core.page import JobQuery
from windlass.core.preview import Fire, preview
from windlass.errors import InvalidInput

_COLUMNS = ("id", "name", "task", "state", "enabled", "when", "next_run_at", "last_run_at", "declared_by")


@click.group(cls=NounGroup)
def schedules() -> None:
    """List and show recurring jobs; disable what is declared no more."""


@schedules.command(name="list")
@click.option("--task", "tasks", multiple=True, help="Only of this task; again for more.", shell_complete=completing.tasks)
@click.option("--search", metavar="TEXT", help="Found in task, name, subject, last error or payload.")
@options.limit
@click.option("--cursor", help="Where the page before ended.")
@options.listing
@options.database
def list_(*, tasks: tuple[str, ...], search: str | None, as_json: bool, database: str | None, **place: Any) -> None:
    """List recurring jobs, newest first."""
    wanted = JobFilter(tasks=tasks, search=search, is_recurring=True)
    with operating(database) as operator:
        page = operator.list_sync(JobQuery(filter=wanted, **place))
        if not page.total:
            hint_at_unknown(operator, tasks)
    if as_json:
        total = {"total": page.total, "is_total_exact": page.is_total_exact, "next_cursor": page.next_cursor}
        say_json({"schedules": [job_fields(one) | {"when": _when(one)} for one in page.jobs], **total})
        return
    say_table((_row(one) for one in page.jobs), _COLUMNS)
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


@schedules.command()
@click.argument("name", shell_complete=completing.schedules)
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many of the next times to show.")
@options.as_json
@options.database
def show(name: str, *, count: int, as_json: bool, database: str | None) -> None:
    """Show a recurring job, by name, with its next times."""
    with operating(database) as operator:
        found = operator.schedules.get_sync(name)
        now = run(run(operator.store()).clock())
    rule = found.recurrence
    fires = [] if rule is None else preview(rule, now, count)
    if as_json:
        say_json({**job_fields(found), "when": _when(found), "next_times": plain(fires)})
        return
    say_fields({"when": _when(found), **job_fields(found)})
    click.echo("\nif it were created or resumed now, it would run at")
    _say_fires(fires)


@schedules.command(name="preview")
@click.argument("cadence")
@click.option("--timezone", default="UTC", show_default=True, help="An IANA name, such as Europe/Helsinki.")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many of the next times to show.")
@options.as_json
@options.database
def preview_(cadence: str, *, timezone: str, count: int, as_json: bool, database: str | None) -> None:
    """Show when a job with this CADENCE would run: five cron fields, a name such as @daily, or '@every 90m'."""
    rule = Recurrence(cadence=parse_cadence(cadence), timezone=timezone)
    with operating(database) as operator:
        now = run(run(operator.store()).clock())
    fires = preview(rule, now, count)
    if as_json:
        say_json({"when": describe(rule.cadence, timezone), "next_times": plain(fires)})
        return
    say(describe(rule.cadence, timezone))
    _say_fires(fires)


_FIRES = ("utc", "local", "clock")


def _say_fires(fires: Sequence[Fire]) -> None:
    say_table(({"utc": fire.at, "local": f"{fire.local:%Y-%m-%d %H:%M:%S %Z}", "clock": fire.shift} for fire in fires), _FIRES)


@schedules.command()
@click.argument("app")
@click.option(
    "--older-than",
    metavar="DURATION",
    default="2h",
    show_default=True,
    help="Not declared for so long; running workers repeat every hour what they declare.",
)
@options.as_json
@options.database
def prune(app: str, *, older_than: str, as_json: bool, database: str | None) -> None:
    """Disable what the application called APP no longer declares; nothing of another application's."""
    with operating(database) as operator:
        moved = operator.schedules.prune_declared_sync(app, parse_duration(older_than, field="older_than"))
    if as_json:
        say_json({"schedules": [job_fields(one) for one in moved.changed], "total": len(moved.changed)})
        return
    for one in moved.changed:
        say(f"schedule {one.name} is disabled")
    say(f"{len(moved.changed)} disabled")


def _row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "task": job.task,
        "state": job.state,
        "enabled": job.is_enabled,
        "when": _when(job),
        "next_run_at": job.run_at,
        "last_run_at": job.last_run_at,
        "declared_by": job.declared_by,
    }


def _when(job: Job) -> str | None:
    try:
        rule = job.recurrence
    except InvalidInput:
        return "cannot be read"
    return None if rule is None else describe(rule.cadence, rule.timezone)
