"""`windlass upkeep` and `windlass chores`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import completing, options
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say, say_json, say_table
from windlass.cli.session import operating
from windlass.cli.signals import Signals
from windlass.cli.target import open_app
from windlass.core.chore import Chore
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@options.database
@options.log_level("info")
@options.json_logs
@options.migrate
def upkeep(target: str | None, *, database: str | None, log_level: str, json_logs: bool, migrate: bool) -> None:
    """Keep the queue moving without running jobs: promote, spawn, reclaim, age, prune, fold.

    Every worker does this too; run it alone where workers come and go. SIGTERM or Ctrl-C stops it.
    """
    configure_logging(log_level, as_json=json_logs)
    app = open_app(target, database_url=database)
    if migrate:
        app.migrate()
    app.check_schema()
    asyncio.run(_keep_up(app))


async def _keep_up(app: Windlass) -> None:
    signals, stopping = Signals(app.settings.grace), asyncio.Event()
    signals.call(stopping.set, stopping.set)
    async with app, app.keeping():
        await stopping.wait()


@click.group(cls=NounGroup)
def chores() -> None:
    """Look at upkeep, pause and resume it."""


@chores.command("list")
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None) -> None:
    """Show each chore: when it ran last, where, how long, how many rows, and its last error."""
    with operating(database) as operator:
        found = operator.chores.list_sync()
    if as_json:
        say_json({"chores": [plain(chore) for chore in found], "total": len(found)})
    else:
        say_table(map(_line, found), ("chore", "state", "last_run", "rows", "ms", "worker", "last_error"), widest=None)


def _line(chore: Chore) -> dict[str, Any]:
    return {
        "chore": chore.name,
        "state": "paused" if chore.paused_at is not None else "active",
        "last_run": chore.last_run_at,
        "rows": chore.last_rows,
        "ms": chore.last_duration_ms,
        "worker": chore.worker,
        "last_error": chore.last_error,
    }


@chores.command()
@click.argument("name", shell_complete=completing.chores)
@options.database
def pause(name: str, *, database: str | None) -> None:
    """Let no process do a chore until it is resumed; processes notice within seconds."""
    with operating(database) as operator:
        is_changed = operator.chores.pause_sync(name)
    say(f"{name} is paused" if is_changed else f"{name} was paused already")


@chores.command()
@click.argument("name", shell_complete=completing.chores)
@options.database
def resume(name: str, *, database: str | None) -> None:
    """Undo `pause`."""
    with operating(database) as operator:
        is_changed = operator.chores.resume_sync(name)
    say(f"{name} goes on" if is_changed else f"{name} was not paused")
