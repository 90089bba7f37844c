"""What `windlass serve` and `windlass up` have in common: a server with its port."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from windlass.app import Windlass
from windlass.cli.banner import banner
from windlass.errors import ConfigError

if TYPE_CHECKING:
    from windlass.web.listener import HttpListener
    from windlass.web.start import Line


class OpenedServer(NamedTuple):
    """A server that has its port and does not answer yet."""

    listener: HttpListener
    greeting: Sequence[Line]

    async def listen(self, what: str, *further: tuple[str, str]) -> None:
        """Print what runs, where the server is, how to log in and the `further` lines; then answer until stopped."""
        click.echo(_greeting(what, self.greeting, further))
        await self.listener.listen()


def _greeting(what: str, lines: Sequence[Line], further: Sequence[tuple[str, str]]) -> str:
    """Lay a greeting out: labels in a column, and what is to be typed last, on a line of its own."""
    tried = [line for line in lines if line.label == "try:"]
    labelled = [*(line for line in lines if line not in tried), *further]
    return "\n".join([banner(what, labelled), *(f"  {label} {text}" for label, text in tried)])


@asynccontextmanager
async def opened(app: Windlass, *, task: str | None = None) -> AsyncIterator[OpenedServer]:
    """Take the port; raises ConfigError when it is not to be had. The greeting has a command that enqueues `task`."""
    try:
        from windlass.web import listener, start  # noqa: PLC0415 - an optional dependency
        from windlass.web.server import build_server  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise ConfigError(f"the server needs {error.name}; install windlass[server]") from error
    server = build_server(app)
    first_token = await start.prepare(server)
    with listener.bind(app.settings.host, app.settings.port) as bound:
        is_private = start.is_loopback(app.settings.host) or sys.stdout.isatty()
        greeting = start.greeting(server, bound.getsockname()[1], first_token, is_private=is_private, task=task)
        yield OpenedServer(listener.HttpListener(server, bound), greeting)
