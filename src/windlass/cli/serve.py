"""`windlass serve`."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import click

from windlass.app import Windlass
from windlass.cli.target import load_app
from windlass.errors import ConfigError
from windlass.telemetry import configure_logging

if TYPE_CHECKING:
    from windlass.web.listener import Listener


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
    try:
        from windlass.web import listener, start  # noqa: PLC0415 - an optional dependency
        from windlass.web.server import build_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"the server needs {error.name}; install windlass[server]") from error
    server = build_server(app)
    async with app:
        first_token = await start.prepare(server)
        with listener.bind(app.settings.host, app.settings.port) as bound:
            listening = listener.Listener(server, bound)
            _stop_on_signals(listening)
            is_private = start.is_loopback(app.settings.host) or sys.stdout.isatty()
            for line in start.greeting(server, bound.getsockname()[1], first_token, is_private=is_private):
                click.echo(f"windlass: {line}")
            async with app.keeping():
                await listening.listen()


def _stop_on_signals(listening: Listener) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, listening.stop)
