"""`windlass convert-cron`: the interval scheduler's migration from cron to intervals."""

from __future__ import annotations

import sys

import click

from windlass.cli import options
from windlass.cli.exit_codes import PARTLY
from windlass.cli.output import say, say_json, say_table
from windlass.cli.session import operating
from windlass.core.blocking import run
from windlass.core.cadence_text import describe
from windlass.core.cron_migration import Conversion
from windlass.errors import ConfigError
from windlass.store import Store


@click.command("convert-cron")
@click.option("--apply", "is_applied", is_flag=True, help="Convert; without it nothing is changed.")
@click.option("--undo", "is_undone", is_flag=True, help="Give converted jobs their cron expression back.")
@options.as_json
@options.database
def convert_cron(*, is_applied: bool, is_undone: bool, as_json: bool, database: str | None) -> None:
    """Turn cron expressions that are plain intervals into intervals; show what needs a look.

    A converted job keeps its next time and counts on from it, so it fires when it always did. Exit code 0: every cron job was
    converted (or would be); 3: some stay as they are, each with its reason.
    """
    if is_applied and is_undone:
        raise ConfigError("give --apply or --undo, not both")
    with operating(database) as operator:
        found = run(_convert(run(operator.store()), dry_run=not (is_applied or is_undone), backwards=is_undone))
    if as_json:
        say_json([_document(each) for each in found])
    else:
        _say_page(found, is_done=is_applied or is_undone)
    sys.exit(PARTLY if any(each.becomes is None for each in found) else 0)


async def _convert(store: Store, *, dry_run: bool, backwards: bool) -> list[Conversion]:
    migration = store.cron_migration
    return [each async for each in (migration.undo() if backwards else migration.convert(dry_run=dry_run))]


def _say_page(found: list[Conversion], *, is_done: bool) -> None:
    if not found:
        say("there is nothing to convert")
        return
    becomes = "became" if is_done else "becomes"
    rows = [_document(each) | {becomes: _becomes(each), "remark": _remark(each)} for each in found]
    say_table(rows, ("job", "name", "task", "cadence", becomes, "remark"), widest=None)
    changed = sum(each.becomes is not None for each in found)
    done = "changed" if is_done else "would change; nothing was changed, add --apply to do it"
    click.echo(f"\n{changed} {done}; {len(found) - changed} need review")


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
