"""`windlass remote`."""

from __future__ import annotations

import asyncio
import logging
import os

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli import options, supervised
from windlass.cli.exit_codes import abandon
from windlass.cli.signals import Signals
from windlass.cli.target import open_app
from windlass.config import Settings
from windlass.core.pool import MAX_SLOTS
from windlass.errors import ConfigError
from windlass.store.backend import NO_DATABASE
from windlass.telemetry import configure_logging


@click.command()
@click.argument("url", metavar="URL")
@click.argument("target", metavar="MODULE:APP")
@click.option("--token", help="A worker's token; better in WINDLASS_TOKEN, where other users of the machine cannot read it.")
@click.option("--lane", "lanes", multiple=True, help="Serve this lane; again for more. Default: those the tasks declare.")
@click.option("--task", "tasks", multiple=True, help="Run only this task; again for more.")
@click.option("--slots", type=click.IntRange(1, MAX_SLOTS), default=5, show_default=True, help="How many jobs at a time.")
@supervised.processes
@options.log_level("info")
@options.json_logs
def remote(  # noqa: PLR0913 - an argument for each option
    url: str,
    target: str,
    *,
    token: str | None,
    lanes: tuple[str, ...],
    tasks: tuple[str, ...],
    slots: int,
    processes: int,
    log_level: str,
    json_logs: bool,
    alone: bool,
    parent: int | None,
) -> None:
    """Run the jobs of an application for the server at URL, over HTTP; no database is needed here.

    SIGTERM or Ctrl-C: pull no more, finish what runs within the grace, give back the rest. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    # It would log every poll, also in the logs that are kept with runs.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    app = _detached(target, tasks)
    if not (token or os.environ.get("WINDLASS_TOKEN")):
        raise ConfigError(
            "give the worker's token in WINDLASS_TOKEN or with --token; `windlass token new NAME --role worker` makes one"
        )
    if not alone:
        supervised.supervise(processes, grace=app.settings.grace)
    supervised.die_with_parent(parent)
    if asyncio.run(_work(app, url, token, lanes=lanes, slots=slots, target=target)):
        abandon()


def _detached(target: str, tasks: tuple[str, ...]) -> Windlass:
    """Return the application for its tasks; a handler that asks for a database without naming one gets an error."""
    app = open_app(target, tasks=tasks or None)
    if app.settings.database_url == Settings().database_url:
        app.configure(database_url=NO_DATABASE)
        # For the processes of tasks that have their own.
        os.environ["WINDLASS_DATABASE_URL"] = NO_DATABASE
    packs.install(app, app.settings.packs or ())
    app.served()
    return app


async def _work(app: Windlass, url: str, token: str | None, *, lanes: tuple[str, ...], slots: int, target: str) -> bool:
    """Work until a signal; returns whether handlers were left behind."""
    from windlass.remote_worker.running import working  # noqa: PLC0415 - needs the extra `remote`

    signals = Signals(app.settings.grace)
    async with working(app, url, token, lanes=lanes, slots=slots, target=target) as running:
        signals.call(running.stop, running.hurry)
        await running.stopped()
    return running.has_lost
