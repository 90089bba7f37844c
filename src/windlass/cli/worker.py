"""`windlass worker`."""

from __future__ import annotations

import asyncio

import click

from windlass.app import Windlass
from windlass.cli import options, supervised
from windlass.cli.exit_codes import abandon
from windlass.cli.signals import Signals
from windlass.cli.target import OWN, open_app
from windlass.config import load
from windlass.errors import ConfigError
from windlass.packs import install
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@options.pools
@options.packs
@supervised.processes
@options.log_level("info")
@options.json_logs
@options.migrate
def worker(
    target: str | None,
    *,
    pools: str | None,
    packs: str | None,
    processes: int,
    log_level: str,
    json_logs: bool,
    migrate: bool,
    alone: bool,
    parent: int | None,
) -> None:
    """Run the jobs of an application until stopped.

    Without MODULE:APP it runs the tasks of the packs that --packs or WINDLASS_PACKS names.

    SIGTERM or Ctrl-C: stop claiming, finish what runs within the grace, give back the rest. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    target = target or _own(packs)
    if not alone:
        # Found out here, once, and not by every process.
        app = _settled(target, migrate=migrate, pools=pools, packs=packs)
        app.close()
        supervised.supervise(processes, grace=app.settings.grace, without="--migrate")
    supervised.die_with_parent(parent)
    if asyncio.run(_work(_settled(target, migrate=False, pools=pools, packs=packs), target)):
        abandon()


def _own(packs: str | None) -> str:
    """Name the application of a worker that runs packs only."""
    if packs is None and load().packs is None:
        raise ConfigError(
            "name an application, as in `windlass worker myproject.jobs:app`, or packs, as in `windlass worker --packs notify`"
        )
    return OWN


def _settled(target: str, *, migrate: bool, **settings: str | None) -> Windlass:
    """Give the application with what was typed and with the packs its settings name, after a look at its tables."""
    app = open_app(target, **settings)
    install(app, app.settings.packs or ())
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
