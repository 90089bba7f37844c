"""`windlass up`."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli.serving import Signals, opened
from windlass.cli.target import load_app
from windlass.config import PREFIX
from windlass.telemetry import configure_logging

_OWN = "windlass.packs.standard:app"


@click.command()
@click.argument("target", metavar="[MODULE:APP]", default=_OWN, required=False)
@click.option("--host", help="Where to listen; default: WINDLASS_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Default: WINDLASS_PORT, else 8060; 0 is any free port.")
@click.option("--database", metavar="URL", help="Default: WINDLASS_DATABASE_URL, else sqlite:///windlass.db.")
@click.option("--pools", help="Slots by lane, as in fast=3,*=5; * serves every lane but pull.")
@click.option("--log-level", default="warning", show_default=True, help="debug, info, warning or error.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
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
    app = load_app(target)
    given = {"host": host, "port": port, "pools": pools, "database_url": database}
    app.configure(**{name: value for name, value in given.items() if value is not None})
    packs.install(app, app.settings.packs or packs.SAFE)
    app.migrate()
    app.check_schema()
    if asyncio.run(_run(app, target)):
        # Handlers that would not stop are still on other threads; nothing is left to wait for.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def _run(app: Windlass, target: str) -> bool:
    """Run until a signal; says whether handlers were left behind."""
    signals = Signals()
    async with app, opened(app, *_story(app)) as listening, app.working(target=target) as worker:

        def stop() -> None:
            listening.stop()
            worker.stop()

        def hurry() -> None:
            listening.stop()
            worker.hurry()

        signals.tell(stop, hurry)
        # A worker that is worn out stops by itself, and its server must not go on alone.
        watching = asyncio.create_task(worker.stopped())
        watching.add_done_callback(lambda _: None if listening.should_exit else listening.stop())
        await listening.listen()
        watching.cancel()
    return worker.has_lost


def _story(app: Windlass) -> list[str]:
    settings = app.settings
    pools = ",".join(f"{pool.lane}={pool.slots}" for pool in settings.pools)
    tasks = ", ".join(sorted(app.tasks)) or "none"
    kind, _, rest = settings.database_url.partition(":")
    # Of a server's address only the kind: it may hold a password.
    place = rest.removeprefix("///") if kind == "sqlite" else kind
    return [f"database {place}, worker slots {pools}, upkeep, tasks: {tasks}"]
