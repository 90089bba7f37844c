"""What `windlass serve` and `windlass up` have in common: a server that listens until a signal comes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
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
