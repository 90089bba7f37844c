"""`windlass worker`."""

from __future__ import annotations

import asyncio

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli import options, supervised
from windlass.cli.exit_codes import abandon
from windlass.cli.signals import Signals
from windlass.cli.target import open_app
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="MODULE:APP")
@options.pools
@supervised.processes
@options.log_level("info")
@options.json_logs
@options.migrate
def worker(
    target: str,
    *,
    pools: str | None,
    processes: int,
    log_level: str,
    json_logs: bool,
    migrate: bool,
    alone: bool,
    parent: int | None,
) -> None:
    """Run the jobs of an application until stopped.

    SIGTERM or Ctrl-C: stop claiming, finish what runs within the grace, give back the rest. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    if not alone:
        # Found out here, once, and not by every process.
        app = _settled(target, pools, migrate=migrate)
        app.close()
        supervised.supervise(processes, grace=app.settings.grace, without="--migrate")
    supervised.die_with_parent(parent)
    if asyncio.run(_work(_settled(target, pools, migrate=False), target)):
        abandon()


def _settled(target: str, pools: str | None, *, migrate: bool) -> Windlass:
    """Give the application with what was typed and with the packs its settings name, after a look at its tables."""
    app = open_app(target, pools=pools)
    packs.install(app, app.settings.packs or ())
    if migrate:
        app.migrate()
    app.check_schema()
    return app


async def _work(app: Windlass, target: str) -> bool:
    """Work until a signal; says whether handlers were left behind."""
    signals = Signals(app.settings.grace)
    async with app, app.working(target=target) as running:
        signals.tell(running.stop, running.hurry)
        await running.stopped()
    return running.has_lost
