"""`windlass up`."""

from __future__ import annotations

import asyncio
import os

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.exit_codes import abandon
from windlass.cli.serving import opened
from windlass.cli.signals import Signals
from windlass.cli.target import open_app
from windlass.config import PREFIX
from windlass.telemetry import configure_logging

_OWN = "windlass.packs.standard:app"


@click.command()
@click.argument("target", metavar="[MODULE:APP]", default=_OWN, required=False)
@options.host
@options.port
@options.database
@options.pools
@options.log_level("warning")
@options.json_logs
def up(
    target: str, *, host: str | None, port: int | None, database: str | None, pools: str | None, log_level: str, json_logs: bool
) -> None:
    """Run everything in one process: server, worker, upkeep and the built-in tasks.

    With MODULE:APP it runs the application's tasks too. Brings the schema up to date first. SIGTERM or Ctrl-C: take no more
    requests and jobs, finish what runs within the grace, give back the rest. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    if database is not None:
        # By the environment, so that handlers in child processes find it too.
        os.environ[f"{PREFIX}DATABASE_URL"] = database
    app = open_app(target, host=host, port=port, pools=pools, database_url=database)
    packs.install(app, app.settings.packs or packs.SAFE)
    app.migrate()
    app.check_schema()
    if asyncio.run(_run(app, target)):
        abandon()


async def _run(app: Windlass, target: str) -> bool:
    """Run until a signal; says whether handlers were left behind."""
    signals = Signals()
    async with app, opened(app) as desk, app.working(target=target) as worker:
        listener = desk.listener

        def stop() -> None:
            listener.stop()
            worker.stop()

        def hurry() -> None:
            listener.stop()
            worker.hurry()

        signals.tell(stop, hurry)
        # A worker that is worn out stops by itself, and its server must not go on alone.
        watching = asyncio.create_task(worker.stopped())
        watching.add_done_callback(lambda _: None if listener.should_exit else listener.stop())
        await desk.listen(_story(app))
        watching.cancel()
    return worker.has_lost


def _story(app: Windlass) -> str:
    settings = app.settings
    pools = ",".join(f"{pool.lane}={pool.slots}" for pool in settings.pools)
    tasks = ", ".join(sorted(app.tasks)) or "none"
    kind, _, rest = settings.database_url.partition(":")
    # Of a server's address only the kind: it may hold a password.
    place = rest.removeprefix("///") if kind == "sqlite" else kind
    return f"database {place}, worker slots {pools}, upkeep, tasks: {tasks}"
