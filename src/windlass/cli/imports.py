"""`windlass import`: schedules from elsewhere, and what was exported."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TextIO

import click

from windlass.cli import options
from windlass.cli.exit_codes import PARTLY
from windlass.cli.import_lines import import_lines
from windlass.cli.import_schedules import apscheduler, celery_beat, django_q
from windlass.cli.output import say, say_json, say_table
from windlass.cli.session import operating
from windlass.core.blocking import run
from windlass.core.cadence import Recurrence
from windlass.core.cadence_text import describe
from windlass.core.crontab import CrontabEntry, Unreadable, parse_crontab
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.errors import InvalidInput
from windlass.store import Store

_TASK = "command"


@click.group("import")
def import_() -> None:
    """Bring schedules from elsewhere, or what `windlass export` wrote."""


for _command in (import_lines, celery_beat, apscheduler, django_q):
    import_.add_command(_command)


@import_.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--apply", "is_applied", is_flag=True, help="Create the schedules; without it nothing is stored.")
@click.option("--system", is_flag=True, help="A system's crontab, with a user's name before each command.")
@click.option("--timezone", default="UTC", show_default=True, help="The zone of lines without CRON_TZ.")
@options.as_json
@options.database
def crontab(file: TextIO, *, is_applied: bool, system: bool, timezone: str, as_json: bool, database: str | None) -> None:
    """Turn the lines of a crontab into recurring jobs of the task `command`.

    Doing it twice changes nothing. Commands run only on workers with the pack `command` (`windlass worker --packs
    command`). Exit code 3: some lines could not be read; they are listed, and nothing is stored for them.
    """
    found = parse_crontab(file.read(), has_users=system, timezone=timezone)
    with operating(database, makes_file=True) as operator:
        rows = run(_import(run(operator.store()), found, is_applied=is_applied))
    if as_json:
        say_json(rows)
    else:
        _say_page(rows, is_applied=is_applied)
    sys.exit(PARTLY if any(row["problem"] for row in rows) else 0)


Row = dict[str, object]


async def _import(store: Store, found: list[CrontabEntry | Unreadable], *, is_applied: bool) -> list[Row]:
    now = await store.clock()
    return [await _import_one(store, each, now, is_applied=is_applied) for each in found]


async def _import_one(store: Store, found: CrontabEntry | Unreadable, now: datetime, *, is_applied: bool) -> Row:
    if isinstance(found, Unreadable):
        return _row(found.line, found.text, problem=found.reason)
    rule = Recurrence(cadence=found.cadence, timezone=found.timezone)
    try:
        job = _job(found, rule)
    except InvalidInput as error:
        return _row(found.line, found.command, problem=str(error))
    status = "new"
    if is_applied:
        [answer] = await store.enqueue([job])
        status = "unchanged" if answer.is_duplicate else "created"
    words = describe(found.cadence, found.timezone)
    next_at = rule.first(now).isoformat(sep=" ", timespec="minutes")
    return _row(found.line, found.command, name=found.name, when=words, next_at=next_at, status=status)


def _row(line: int, command: str, *, problem: str | None = None, **known: str) -> Row:
    blank = dict.fromkeys(("name", "when", "next_at", "status"))
    return {"line": line, **blank, **known, "command": command, "problem": problem}


def _job(entry: CrontabEntry, rule: Recurrence) -> NewJob:
    payload: dict[str, object] = {"command": entry.command}
    payload |= {key: value for key in ("env", "stdin", "user") if (value := getattr(entry, key))}
    return NewJob(
        task=_TASK,
        name=entry.name,
        payload=encode_object(payload),
        recurrence=rule,
        # Cron does not try again either.
        max_attempts=1,
        description=f"line {entry.line} of a crontab",
        created_by="import crontab",
    )


def _say_page(rows: list[Row], *, is_applied: bool) -> None:
    good = [row for row in rows if not row["problem"]]
    status = "status" if is_applied else "would be"
    if good:
        shown = [row | {"next": row["next_at"], status: row["status"]} for row in good]
        say_table(shown, ("line", "name", "when", "next", status, "command"), widest=None)
    else:
        say("no line can be imported")
    for row in rows:
        if row["problem"]:
            click.echo(f"line {row['line']}: {row['problem']}: {row['command']}")
    if not is_applied and good:
        click.echo("\nnothing was stored; add --apply to do it")
