"""`windlass up`."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from windlass.app import Windlass
from windlass.cli import options, reloader
from windlass.cli.banner import worker_lines
from windlass.cli.exit_codes import abandon
from windlass.cli.serving import opened
from windlass.cli.signals import Signals
from windlass.cli.target import OWN, open_app
from windlass.config import PREFIX, Settings, load
from windlass.errors import ConfigError
from windlass.packs import EXTRA, SAFE, PackUnavailable, hello, install, install_available
from windlass.process import search_less_garbage
from windlass.telemetry import configure_logging

_DEMO = "windlass.packs.demo:app"
_DEMO_DATABASE = "sqlite:///windlass-demo.db"


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@click.option("--demo", is_flag=True, help="Run a lively sample, in windlass-demo.db if no database is named.")
@options.host
@options.port
@options.database
@options.pools
@options.packs
@options.log_level("info")
@options.json_logs
@reloader.option
def up(
    target: str | None,
    *,
    demo: bool,
    host: str | None,
    port: int | None,
    database: str | None,
    pools: str | None,
    packs: str | None,
    log_level: str,
    json_logs: bool,
    is_reloading: bool,
) -> None:
    """Run everything in one process: server, worker and upkeep.

    With MODULE:APP it runs the application's tasks and the packs that are named; without, the ready-made tasks. Brings the
    schema up to date first. SIGTERM or Ctrl-C: take no more requests and jobs, finish what runs within the grace, give back
    the rest. A second one: at once.
    """
    if is_reloading:
        reloader.reload()
    configure_logging(log_level, as_json=json_logs)
    if demo and target is not None:
        raise ConfigError("--demo has an application of its own; leave out MODULE:APP, or --demo")
    database = database or (_demo_database() if demo else None)
    if database is not None:
        # By the environment, so that handlers in child processes find it too.
        os.environ[f"{PREFIX}DATABASE_URL"] = database
    is_own = target is None
    target = target or (_DEMO if demo else OWN)
    app = open_app(target, host=host, port=port, pools=pools, database_url=database, packs=packs)
    missing = _install_packs(app, is_own=is_own)
    app.migrate()
    app.check_schema()
    if asyncio.run(_run(app, target, _missing(missing), is_demo=demo)):
        abandon()


def _install_packs(app: Windlass, *, is_own: bool) -> list[PackUnavailable]:
    """Declare the tasks of the packs that were named; without an application of the user, all that can be had.

    An application gets none by itself: their tasks and schedules would appear unasked in its database.
    """
    if app.settings.packs is None and is_own:
        return install_available(app, SAFE)
    install(app, app.settings.packs or ())
    return []


def _missing(packs: list[PackUnavailable]) -> list[tuple[str, str]]:
    """Describe the packs that were left out, and the remedy."""
    if not packs:
        return []
    libraries = ", ".join(sorted({error.library or error.name for error in packs}))
    return [("left out", f"packs {', '.join(error.name for error in packs)}: {libraries} not installed; install {EXTRA}")]


def _demo_database() -> str | None:
    """Keep the sample out of the real jobs: a file of its own, unless a database was chosen on purpose."""
    return _DEMO_DATABASE if load().database_url == Settings().database_url else None


async def _run(app: Windlass, target: str, further: list[tuple[str, str]], *, is_demo: bool) -> bool:
    """Run until a signal; returns whether handlers were left behind."""
    signals = Signals(app.settings.grace)
    task = hello.TASK if hello.TASK in app.tasks else None
    async with app, opened(app, task=task) as server, app.working(target=target, end_process=_start_again) as worker:
        listener = server.listener
        search_less_garbage()

        def stop() -> None:
            listener.stop()
            worker.stop()

        def hurry() -> None:
            listener.stop()
            worker.hurry()

        signals.call(stop, hurry)
        # A worker that is worn out stops by itself, and its server must not go on alone.
        watching = asyncio.create_task(worker.stopped())
        watching.add_done_callback(lambda _: None if listener.should_exit else listener.stop())
        what = "server, worker and upkeep in one process"
        await server.listen(f"{what}, with sample jobs (demo)" if is_demo else what, *worker_lines(app), *further)
        watching.cancel()
    return worker.has_lost


def _start_again() -> None:
    """Start this command anew in its own place; no supervisor would."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "windlass", *sys.argv[1:]])  # noqa: S606 - our own command
