"""`windlass worker`."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.exit_codes import abandon
from windlass.cli.signals import Signals
from windlass.cli.supervisor import Supervisor
from windlass.cli.target import open_app
from windlass.telemetry import configure_logging

_PR_SET_PDEATHSIG = 1


@click.command()
@click.argument("target", metavar="MODULE:APP")
@options.pools
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="How many workers to keep running.")
@options.log_level("info")
@options.json_logs
@options.migrate
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
        _settled(target, pools, migrate=migrate).close()
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
    if asyncio.run(_work(_settled(target, pools, migrate=False), target)):
        abandon()


def _without(arguments: list[str], flag: str) -> list[str]:
    return [argument for argument in arguments if argument != flag]


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
    signals = Signals()
    async with app, app.working(target=target) as running:
        signals.tell(running.stop, running.hurry)
        await running.stopped()
    return running.has_lost


def _die_with_parent(parent: int | None) -> None:
    """Stop in order when the supervisor is gone, where the system can tell; elsewhere its signal does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It may have died before this process could ask to be told.
    if parent is not None and os.getppid() != parent:
        sys.exit(0)
