"""`windlass serve`."""

from __future__ import annotations

import asyncio

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.banner import database_line
from windlass.cli.serving import opened
from windlass.cli.signals import Signals
from windlass.cli.target import open_app
from windlass.packs import install
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@options.host
@options.port
@options.database
@options.packs
@options.log_level("info")
@options.json_logs
@options.migrate
def serve(
    target: str | None,
    *,
    host: str | None,
    port: int | None,
    database: str | None,
    packs: str | None,
    log_level: str,
    json_logs: bool,
    migrate: bool,
) -> None:
    """Serve the HTTP API until stopped, with the upkeep beside it.

    Without MODULE:APP it serves the database; with it, it also knows the application's tasks. SIGTERM or Ctrl-C: finish the
    requests under way within the grace. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    app = open_app(target, host=host, port=port, database_url=database, packs=packs)
    install(app, app.settings.packs or ())
    if migrate:
        app.migrate()
    app.check_schema()
    asyncio.run(_serve(app))


async def _serve(app: Windlass) -> None:
    signals = Signals(app.settings.grace)
    async with app, opened(app) as server, app.keeping():
        signals.call(server.listener.stop, server.listener.stop)
        await server.listen("server and upkeep", database_line(app))
