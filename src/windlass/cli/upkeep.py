"""`windlass upkeep` and `windlass chores`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

import click

from windlass.app import Windlass
from windlass.cli.table import table
from windlass.cli.target import load_app
from windlass.core.audit import Actor
from windlass.core.chore import Chore
from windlass.store import SqlStore
from windlass.telemetry import configure_logging

_DATABASE = click.option("--database", metavar="URL", help="sqlite:///path or postgresql://…; default: WINDLASS_DATABASE_URL")


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@_DATABASE
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
@click.option("--migrate", is_flag=True, help="Bring the schema up to date first.")
def upkeep(target: str | None, *, database: str | None, log_level: str, json_logs: bool, migrate: bool) -> None:
    """Keep the queue moving without running jobs: promote, spawn, reclaim, age, prune, fold.

    Every worker does this too; run it alone where workers come and go. SIGTERM or Ctrl-C stops it.
    """
    configure_logging(log_level, as_json=json_logs)
    app = open_app(target, database)
    if migrate:
        app.migrate()
    app.check_schema()
    asyncio.run(_keep_up(app))


def open_app(target: str | None, database: str | None) -> Windlass:
    """Give the application that was named, or one that has only a database."""
    app = Windlass() if target is None else load_app(target)
    if database is not None:
        app.configure(database_url=database)
    return app


async def _keep_up(app: Windlass) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with app, app.keeping():
        await stopping.wait()


@click.group()
def chores() -> None:
    """Look at upkeep, pause and resume it."""


@chores.command("list")
@_DATABASE
def list_(database: str | None) -> None:
    """Show each chore: when it ran last, where, how long, how many rows, and its last error."""
    found = asyncio.run(_list(Windlass(database)))
    headings = ("chore", "state", "last run", "rows", "ms", "worker", "last error")
    click.echo(table(headings, [_line(chore) for chore in found]))


async def _list(app: Windlass) -> Sequence[Chore]:
    async with app:
        return await (await app.store()).chores.list()


def _line(chore: Chore) -> tuple[object, ...]:
    ran = None if chore.last_run_at is None else chore.last_run_at.isoformat(sep=" ", timespec="seconds")
    state = "paused" if chore.paused_at is not None else "active"
    return chore.name, state, ran, chore.last_rows, chore.last_duration_ms, chore.worker, chore.last_error


@chores.command()
@click.argument("name")
@_DATABASE
def pause(name: str, database: str | None) -> None:
    """Let no process do a chore until it is resumed; processes notice within seconds."""
    is_changed = asyncio.run(_pause(Windlass(database), name, to_pause=True))
    click.echo(f"windlass: {name} is paused" if is_changed else f"windlass: {name} was paused already")


@chores.command()
@click.argument("name")
@_DATABASE
def resume(name: str, database: str | None) -> None:
    """Undo `pause`."""
    is_changed = asyncio.run(_pause(Windlass(database), name, to_pause=False))
    click.echo(f"windlass: {name} goes on" if is_changed else f"windlass: {name} was not paused")


async def _pause(app: Windlass, name: str, *, to_pause: bool) -> bool:
    async with app:
        store = await app.store()
        assert isinstance(store, SqlStore)  # noqa: S101 - the only kind an application opens
        kept = store.acting(Actor("cli")).chores
        return await (kept.pause(name) if to_pause else kept.resume(name))
