"""What `windlass serve` and `windlass up` have in common: a server with its port."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from windlass.app import Windlass
from windlass.errors import ConfigError

if TYPE_CHECKING:
    from windlass.web.listener import Listener


class Desk(NamedTuple):
    """A server that has its port and does not answer yet."""

    listener: Listener
    greeting: Sequence[str]

    async def listen(self, *told: str) -> None:
        """Say what is `told`, where the server is and how to get in, and answer until stopped."""
        for line in (*told, *self.greeting):
            click.echo(f"windlass: {line}")
        await self.listener.listen()


@asynccontextmanager
async def opened(app: Windlass) -> AsyncIterator[Desk]:
    """Take the port; raises ConfigError when it is not to be had."""
    try:
        from windlass.web import listener, start  # noqa: PLC0415 - an optional dependency
        from windlass.web.server import build_server  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise ConfigError(f"the server needs {error.name}; install windlass[server]") from error
    server = build_server(app)
    first_token = await start.prepare(server)
    with listener.bind(app.settings.host, app.settings.port) as bound:
        is_private = start.is_loopback(app.settings.host) or sys.stdout.isatty()
        greeting = start.greeting(server, bound.getsockname()[1], first_token, is_private=is_private)
        yield Desk(listener.Listener(server, bound), greeting)
