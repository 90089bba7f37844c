"""What `windlass serve` and `windlass up` have in common: a server that listens until a signal comes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from windlass.app import Windlass
from windlass.errors import ConfigError

if TYPE_CHECKING:
    from windlass.web.listener import Listener


@asynccontextmanager
async def opened(app: Windlass, *told: str) -> AsyncIterator[Listener]:
    """Take the port, say where and how to get in and what else is `told`, and give what listens."""
    try:
        from windlass.web import listener, start  # noqa: PLC0415 - an optional dependency
        from windlass.web.server import build_server  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise ConfigError(f"the server needs {error.name}; install windlass[server]") from error
    server = build_server(app)
    first_token = await start.prepare(server)
    with listener.bind(app.settings.host, app.settings.port) as bound:
        is_private = start.is_loopback(app.settings.host) or sys.stdout.isatty()
        for line in (*told, *start.greeting(server, bound.getsockname()[1], first_token, is_private=is_private)):
            click.echo(f"windlass: {line}")
        yield listener.Listener(server, bound)


class Signals:
    """Hears SIGTERM and Ctrl-C from its making on, and tells whoever can stop once that is there."""

    def __init__(self) -> None:
        """Catch them, lest one that comes during the start ends the process in the middle of it."""
        self._heard = 0
        self._actions: tuple[Callable[[], None], Callable[[], None]] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._hear)

    def tell(self, stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        """Call `stop` at the first one, be it past already, and `hurry` at every further one."""
        self._actions = stop, hurry
        if self._heard:
            stop()

    def _hear(self) -> None:
        self._heard += 1
        if self._actions is not None:
            self._actions[self._heard > 1]()
