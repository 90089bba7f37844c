"""`windlass worker`."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from typing import NoReturn

import click

from windlass.app import Windlass
from windlass.cli import options, reloader, supervised
from windlass.cli.banner import banner, worker_lines
from windlass.cli.exit_codes import REPLACED, abandon
from windlass.cli.metrics_port import exposed
from windlass.cli.signals import Signals
from windlass.cli.target import OWN, open_app
from windlass.config import load
from windlass.core.pool import separate
from windlass.errors import ConfigError
from windlass.packs import install
from windlass.process import search_less_garbage
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@options.pools
@options.packs
@supervised.processes
@click.option(
    "--process-per-pool",
    is_flag=True,
    default=None,
    help="Run each pool in a process of its own, so that no lane can hold up another; default: WINDLASS_PROCESS_PER_POOL.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Answer GET /metrics for Prometheus on this port, once for all processes; 0 is any free port. Default: not at all.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="Where --metrics-port listens; beyond this machine only with WINDLASS_METRICS_TOKEN.",
)
@click.option("--only-pool", "lane", hidden=True, help="Run this pool of --pools only; what the supervisor starts.")
@options.log_level("info")
@options.json_logs
@options.migrate
@reloader.option
def worker(  # noqa: PLR0913 - one for each option
    target: str | None,
    *,
    pools: str | None,
    packs: str | None,
    processes: int,
    process_per_pool: bool | None,
    metrics_port: int | None,
    metrics_host: str,
    lane: str | None,
    log_level: str,
    json_logs: bool,
    migrate: bool,
    alone: bool,
    parent: int | None,
    is_reloading: bool,
) -> None:
    """Run the jobs of an application until stopped.

    Without MODULE:APP it runs the tasks of the packs that --packs or WINDLASS_PACKS names.

    SIGTERM or Ctrl-C: stop claiming, finish what runs within the grace, give back the rest. A second one: at once.
    """
    if is_reloading:
        reloader.reload()
    configure_logging(log_level, as_json=json_logs)
    target = target or _own(packs)
    if not alone:
        # Found out here, once, and not by every process.
        app = _settled(target, migrate=migrate, pools=pools, packs=packs)
        is_apart = app.settings.process_per_pool if process_per_pool is None else process_per_pool
        each = [("--only-pool", pool.lane) for pool in app.settings.pools] if is_apart else [()]
        with exposed(app, metrics_host, metrics_port) as address:
            lines = worker_lines(app)
            banner_text = banner(_described(processes * len(each)), lines if address is None else [*lines, ("metrics", address)])
            app.close()
            supervised.supervise(
                processes, banner_text, grace=app.settings.grace, without="--migrate", each=each, does_more=address is not None
            )
    supervised.die_with_parent(parent)
    if asyncio.run(_work(_settled(target, migrate=False, pools=pools, packs=packs), target, lane)):
        abandon()


def _described(processes: int) -> str:
    return "worker and upkeep" if processes == 1 else f"worker and upkeep in {processes} processes"


def _own(packs: str | None) -> str:
    """Name the application of a worker that runs packs only."""
    if packs is None and load().packs is None:
        raise ConfigError(
            "name an application, as in `windlass worker myproject.jobs:app`, or packs, as in `windlass worker --packs notify`"
        )
    return OWN


def _settled(target: str, *, migrate: bool, **settings: str | None) -> Windlass:
    """Return the application with what was typed and with the packs its settings name, after a look at its tables."""
    app = open_app(target, **settings)
    install(app, app.settings.packs or ())
    if migrate:
        app.migrate()
    app.check_schema()
    return app


async def _work(app: Windlass, target: str, lane: str | None) -> bool:
    """Work until a signal, with all pools or that of one lane; returns whether handlers were left behind."""
    signals = Signals(app.settings.grace)
    given = app.worker_options()
    chosen = given if lane is None else replace(given, pools=(separate(given.pools, lane),))
    async with app, app.working(target=target, options=chosen, end_process=_end) as running:
        signals.call(running.stop, running.hurry)
        search_less_garbage()
        await running.stopped()
    return running.has_lost


def _end() -> NoReturn:
    """End at once, for the supervisor to start anew: the event loop is blocked for good."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(REPLACED)
