"""Windlass inside a Starlette application: opened with it, closed with it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from windlass.app import Windlass
from windlass.errors import ConfigError

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    jobs: Windlass, *, worker: bool = False, target: str | None = None, around: Lifespan | None = None
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """Make the lifespan of a web application that opens `jobs`, and every Windlass server that is mounted, with it.

    `worker` runs jobs in this process too; only tasks with `isolation="process"` need `target`, written `module:attribute`.
    `around` is a lifespan of your own, entered before and left after.
    """

    @asynccontextmanager
    async def opened(web: Starlette) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = None if around is None else await stack.enter_async_context(around(web))
            await stack.enter_async_context(jobs)
            web.state.windlass = jobs
            # A mounted application gets no lifespan of its own.
            for server in _mounted(web):
                await stack.enter_async_context(server.running())
            if worker:
                await stack.enter_async_context(jobs.working(target=target))
            yield state

    return opened


def get_windlass(connection: HTTPConnection) -> Windlass:
    """Return the application that the lifespan has opened; raises ConfigError where there is none."""
    found = getattr(connection.app.state, "windlass", None)
    if not isinstance(found, Windlass):
        raise ConfigError("the web application has no jobs: give it lifespan=windlass.starlette.lifespan(jobs)")
    return found


def _mounted(web: Starlette) -> list[Any]:
    # The server brings much along; where nothing of it is loaded, nothing of it is mounted.
    module = sys.modules.get("windlass.web.server")
    if module is None:
        return []
    return [route.app for route in web.routes if isinstance(route, Mount) and isinstance(route.app, module.Server)]
