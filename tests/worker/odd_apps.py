"""Applications that import but do not start."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from windlass.core.task import Registry


@asynccontextmanager
async def _failing() -> AsyncIterator[None]:
    if not os.environ.get("NO_SUCH_SETTING"):
        raise ConnectionError("no database pool")
    yield


@asynccontextmanager
async def _hanging() -> AsyncIterator[None]:
    await asyncio.sleep(300)
    yield


@asynccontextmanager
async def _exiting() -> AsyncIterator[None]:
    if not os.environ.get("NO_SUCH_SETTING"):
        os._exit(7)
    yield


empty = SimpleNamespace()
failing = SimpleNamespace(registry=Registry(), open_state=_failing)
hanging = SimpleNamespace(registry=Registry(), open_state=_hanging)
exiting = SimpleNamespace(registry=Registry(), open_state=_exiting)
