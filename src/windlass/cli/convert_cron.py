"""`windlass convert-cron`: seed 001's migration from cron to intervals."""

from __future__ import annotations

import asyncio
import json
import sys

import click

from windlass.app import Windlass
from windlass.cli.table import table
from windlass.core.audit import Actor
from windlass.core.cron_migration import Conversion
from windlass.core.words import describe
from windlass.errors import ConfigError
from windlass.store import SqlStore

NEEDS_REVIEW = 3


@click.command("convert-cron")
@click.option("--apply", "is_applied", is_flag=True, help="Convert; without it nothing is changed.")
@click.option("--undo", "is_undone", is_flag=True, help="Give converted jobs their cron expression back.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option("--database", metavar="URL", help="sqlite:///path or postgresql://…; default: WINDLASS_DATABASE_URL")
def convert_cron(*, is_applied: bool, is_undone: bool, as_json: bool, database: str | None) -> None:
    """Turn cron expressions that are plain intervals into intervals; show what needs a look.

    A converted job keeps its next time and counts on from it, so it fires when it always did. Exit code 0: every cron job was
    converted (or would be); 3: some stay as they are, each with its reason.
    """
    if is_applied and is_undone:
        raise ConfigError("give --apply or --undo, not both")
    app = Windlass(database)
    found = asyncio.run(_convert(app, dry_run=not (is_applied or is_undone), backwards=is_undone))
    click.echo(
        json.dumps([_document(each) for each in found], indent=2) if as_json else _page(found, is_done=is_applied or is_undone)
    )
    sys.exit(NEEDS_REVIEW if any(each.becomes is None for each in found) else 0)


async def _convert(app: Windlass, *, dry_run: bool, backwards: bool) -> list[Conversion]:
    async with app:
        store = await app.store()
        assert isinstance(store, SqlStore)  # noqa: S101 - the only kind an application opens
        migration = store.acting(Actor("cli")).cron_migration
        asked = migration.undo() if backwards else migration.convert(dry_run=dry_run)
        return [each async for each in asked]


def _page(found: list[Conversion], *, is_done: bool) -> str:
    if not found:
        return "windlass: there is nothing to convert"
    headings = ("job", "name", "task", "cadence", "becomes" if not is_done else "became", "remark")
    rows = [(each.job_id, each.name, each.task, each.was.cadence, _becomes(each), _remark(each)) for each in found]
    changed = sum(each.becomes is not None for each in found)
    done = "changed" if is_done else "would change; nothing was changed, add --apply to do it"
    return f"{table(headings, rows)}\n\n{changed} {done}; {len(found) - changed} need review"


def _becomes(each: Conversion) -> str | None:
    return None if each.becomes is None else str(each.becomes.cadence)


def _remark(each: Conversion) -> str:
    return each.reason or describe((each.becomes or each.was).cadence, each.was.timezone)


def _document(each: Conversion) -> dict[str, object]:
    return {
        "job": each.job_id,
        "name": each.name,
        "task": each.task,
        "cadence": str(each.was.cadence),
        "timezone": each.was.timezone,
        "becomes": _becomes(each),
        "reason": each.reason,
    }
