"""`windlass import celery-beat`, `apscheduler`, `django-q`: schedules of other systems."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import click

from windlass.cli import options
from windlass.cli.exit_codes import PARTLY
from windlass.cli.output import say, say_json, say_table
from windlass.cli.session import check_file, operating
from windlass.cli.target import load_object
from windlass.client.operations import Operator
from windlass.core.blocking import run
from windlass.core.cadence_text import describe
from windlass.core.foreign_schedules import (
    FoundSchedule,
    Schedules,
    UnreadableSchedule,
    of_apscheduler,
    of_apscheduler_store,
    of_celery,
    of_django_q,
)
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.errors import ConfigError, InvalidInput, ScheduleExists, WindlassError
from windlass.store import open_database

F = TypeVar("F", bound=Callable[..., Any])
Row = dict[str, Any]
_TABLE = re.compile(r"\w+(\.\w+)?", re.ASCII)
_DRIVER = re.compile(r"^(\w+)\+\w+(?=://)")


def _importing(command: F) -> F:
    for option in (
        options.database,
        options.as_json,
        click.option(
            "--full-names/--last-names",
            "is_full",
            default=None,
            help="Call tasks by their whole path or its last part; default: the path where a process declared it, else the part.",
        ),
        click.option("--lane", default="default", show_default=True, help="The lane of the schedules."),
        click.option("--apply", "is_applied", is_flag=True, help="Create the schedules; without it nothing is stored."),
    ):
        command = option(command)
    return command


@click.command("celery-beat")
@click.argument("source", metavar="FILE|MODULE:NAME")
@click.option("--timezone", help="Default: the application's, else UTC.")
@_importing
def celery_beat(source: str, *, timezone: str | None, **given: Any) -> None:
    """Make schedules of a `beat_schedule`.

    From a JSON file, or from MODULE:NAME, which is imported: a Celery application, or the dictionary itself.
    """
    found = _read_json(source) if Path(source).is_file() else load_object(source)
    conf = getattr(found, "conf", None)
    schedule = found if conf is None else conf.beat_schedule
    if not isinstance(schedule, dict):
        raise InvalidInput("source", source, "is neither a Celery application nor a beat_schedule")
    _import(of_celery(schedule, timezone or str(getattr(conf, "timezone", None) or "UTC")), **given)


@click.command("apscheduler")
@click.argument("source", metavar="URL|MODULE:NAME")
@click.option("--table", default="apscheduler_jobs", show_default=True, help="The table of the job store.")
@_importing
def apscheduler(source: str, *, table: str, **given: Any) -> None:
    """Make schedules of the jobs of APScheduler 3.

    From the URL of a SQLAlchemyJobStore, on SQLite or PostgreSQL: its rows are read without running what is pickled in them, and
    APScheduler is not needed. Or from MODULE:NAME, a scheduler that has its jobs, which is imported and not started.
    """
    if "://" in source:
        _import(of_apscheduler_store(_job_store(source, table)), **given)
        return
    scheduler = load_object(source)
    if not hasattr(scheduler, "get_jobs"):
        raise InvalidInput("source", source, "is no scheduler of APScheduler 3")
    _import(of_apscheduler(scheduler.get_jobs()), **given)


def _job_store(url: str, table: str) -> list[tuple[str, bytes]]:
    if not _TABLE.fullmatch(table):
        raise InvalidInput("table", table, "must be the name of a table, with or without its schema")
    # SQLAlchemy has the name of a driver there.
    plain = _DRIVER.sub(r"\1", url)
    check_file(plain)
    sql = f"select id, job_state from {table} order by id"  # noqa: S608 - checked above
    database = open_database(plain, rng=Random())  # noqa: S311 - spreads what waits for a lock
    with closing(database), _naming(table):
        return database.run_script(
            lambda connection: [(str(row[0]), bytes(row[1])) for row in connection.execute(sql).fetchall()]
        )


@click.command("django-q")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--timezone", help="TIME_ZONE of the project; default: UTC, with a note where that matters.")
@_importing
def django_q(file: str, *, timezone: str | None, **given: Any) -> None:
    """Make schedules of FILE, which `manage.py dumpdata django_q.schedule` wrote.

    `manage.py windlass import django-q` takes whole paths and the TIME_ZONE of the settings by itself.
    """
    found = _read_json(file)
    if not isinstance(found, list):
        raise InvalidInput("file", file, "must be a list of schedules")
    _import(of_django_q(found, timezone), **given)


@contextmanager
def _naming(table: str) -> Iterator[None]:
    try:
        yield
    except WindlassError as error:
        [reason, *_] = str(error.__cause__ or error).splitlines()
        raise ConfigError(f"the table {table!r} cannot be read as a job store: {reason}; --table names another one") from None


def _read_json(file: str) -> Any:
    try:
        return json.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _import(found: Schedules, *, is_applied: bool, lane: str, is_full: bool | None, as_json: bool, database: str | None) -> None:
    with operating(database, makes_file=True) as operator:
        now = run(run(operator.store()).clock())
        rows = [_make(operator, one, is_full=is_full, lane=lane, is_applied=is_applied, now=now) for one in found]
    if as_json:
        say_json(rows)
    else:
        _say_page(rows, is_applied=is_applied)
    sys.exit(PARTLY if any(row["problem"] for row in rows) else 0)


def _make(
    operator: Operator,
    found: FoundSchedule | UnreadableSchedule,
    *,
    is_full: bool | None,
    lane: str,
    is_applied: bool,
    now: datetime,
) -> Row:
    row: Row = dict.fromkeys(("name", "task", "was", "when", "next_at", "status", "payload", "review", "problem"))
    if isinstance(found, UnreadableSchedule):
        return row | {"name": found.name, "problem": found.reason}
    try:
        knows = operator.known_tasks.knows_sync
        if is_full is None:
            is_full = knows(found.full_name)
        task = found.full_name if is_full else found.last_name
        job = NewJob(
            task=task,
            name=found.name,
            lane=lane,
            payload=encode_object(dict(found.payload)),
            recurrence=found.rule,
            description=f"was {found.was}",
            created_by="import",
        )
    except InvalidInput as error:
        return row | {"name": found.name, "problem": str(error)}
    return row | {
        "name": found.name,
        "task": task,
        "was": found.was,
        "when": describe(found.rule.cadence, found.rule.timezone),
        "next_at": found.rule.first(now).isoformat(sep=" ", timespec="minutes"),
        "status": _stored(operator, job, is_paused=found.is_paused) if is_applied else "new",
        "payload": dict(found.payload),
        "review": [*found.review, *([] if knows(task) else [f"no process has declared the task {task!r}"])],
    }


def _stored(operator: Operator, job: NewJob, *, is_paused: bool) -> str:
    """Make a schedule, unless one of its name is there; returns its status."""
    try:
        operator.schedules.create_sync(job, is_enabled=not is_paused)
    except ScheduleExists:
        return "unchanged"
    return "created"


def _say_page(rows: Sequence[Row], *, is_applied: bool) -> None:
    good = [row for row in rows if not row["problem"]]
    status = "status" if is_applied else "would be"
    if good:
        say_table(
            [row | {"next": row["next_at"], status: row["status"]} for row in good],
            ("name", "task", "when", "next", status),
            widest=None,
        )
    else:
        say("no schedule can be imported")
    for row in good:
        for note in row["review"]:
            click.echo(f"look at {row['name']}: {note}")
    for row in rows:
        if row["problem"]:
            click.echo(f"{row['name']} is left out: {row['problem']}")
    if not is_applied and good:
        click.echo("\nnothing was stored; add --apply to do it")
