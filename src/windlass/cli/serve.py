"""`windlass serve`."""

from __future__ import annotations

import asyncio

import click

from windlass.app import Windlass
from windlass.cli.serving import Signals, opened
from windlass.cli.target import load_app
from windlass.telemetry import configure_logging


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@click.option("--host", help="Where to listen; default: WINDLASS_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Default: WINDLASS_PORT, else 8060; 0 is any free port.")
@click.option("--database", metavar="URL", help="sqlite:///path or postgresql://…; default: WINDLASS_DATABASE_URL.")
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
@click.option("--migrate", is_flag=True, help="Bring the schema up to date first.")
def serve(
    target: str | None,
    *,
    host: str | None,
    port: int | None,
    database: str | None,
    log_level: str,
    json_logs: bool,
    migrate: bool,
) -> None:
    """Serve the HTTP API until stopped, with the upkeep beside it.

    Without MODULE:APP it serves the database; with it, it also knows the application's tasks. SIGTERM or Ctrl-C: finish the
    requests under way within the grace. A second one: at once.
    """
    configure_logging(log_level, as_json=json_logs)
    app = Windlass() if target is None else load_app(target)
    given = {"host": host, "port": port, "database_url": database}
    app.configure(**{name: value for name, value in given.items() if value is not None})
    if migrate:
        app.migrate()
    app.check_schema()
    asyncio.run(_serve(app))


async def _serve(app: Windlass) -> None:
    signals = Signals()
    async with app, opened(app) as listening, app.keeping():
        signals.tell(listening.stop, listening.stop)
        await listening.listen()
