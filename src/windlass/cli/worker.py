"""`windlass worker`."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from itertools import count

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli.supervisor import Supervisor
from windlass.cli.target import load_app
from windlass.telemetry import configure_logging

_PR_SET_PDEATHSIG = 1


@click.command()
@click.argument("target", metavar="MODULE:APP")
@click.option("--pools", help="Slots by lane, as in fast=3,*=5; * serves every lane but pull.")
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="How many workers to keep running.")
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
@click.option("--migrate", is_flag=True, help="Bring the schema up to date first.")
@click.option("--alone", is_flag=True, hidden=True, help="Work in this process; what the supervisor starts.")
@click.option("--parent", type=int, hidden=True, help="The supervisor that started this process.")
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
        app = load_app(target)
        _settle(app, pools, migrate=migrate)
        app.close()
        command = [
            sys.executable,
            "-m",
            "windlass",
            *_without(sys.argv[1:], "--migrate"),
            "--alone",
            "--parent",
            str(os.getpid()),
        ]
        sys.exit(Supervisor(command, processes).run())
    _die_with_parent(parent)
    app = load_app(target)
    _settle(app, pools, migrate=False)
    lost = asyncio.run(_work(app, target))
    if lost:
        # Handlers that would not stop are still on other threads; nothing is left to wait for.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _without(arguments: list[str], flag: str) -> list[str]:
    return [argument for argument in arguments if argument != flag]


def _settle(app: Windlass, pools: str | None, *, migrate: bool) -> None:
    """Read the settings with what was typed, bring the packs they name, and see that the tables are there."""
    if pools is not None:
        app.configure(pools=pools)
    packs.install(app, app.settings.packs or ())
    if migrate:
        app.migrate()
    app.check_schema()


async def _work(app: Windlass, target: str) -> bool:
    """Work until a signal; says whether handlers were left behind."""
    loop = asyncio.get_running_loop()
    async with app, app.working(target=target) as running:
        signals = count()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: running.hurry() if next(signals) else running.stop())
        await running.stopped()
    return running.has_lost


def _die_with_parent(parent: int | None) -> None:
    """Stop in order when the supervisor is gone, where the system can tell; elsewhere its signal does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It may have died before this process could ask to be told.
    if parent is not None and os.getppid() != parent:
        sys.exit(0)
