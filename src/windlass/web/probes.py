"""What load balancers and supervisors ask: is it up, is it ready."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from fastapi import Request
from pydantic import BaseModel

from windlass.app import Windlass
from windlass.errors import StoreError
from windlass.web.errors import UNAVAILABLE, Refusal
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route

PROBES = frozenset({b"/healthz", b"/readyz"})
_FRESH_S = 1.0
_PATIENCE_S = 5.0


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness:
    """Asks the database at most once a second, however many ask us."""

    def __init__(self, app: Windlass) -> None:
        """Know nothing yet."""
        self._app = app
        self._lock = asyncio.Lock()
        self._asked_at = -_FRESH_S
        self._problem: str | None = None

    async def problem(self) -> str | None:
        """Return what is wrong, or None."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= _FRESH_S:
                self._problem = await self._ask()
                self._asked_at = time.monotonic()
            return self._problem

    async def _ask(self) -> str | None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await (await self._app.store()).check_schema()
        except TimeoutError:
            return "the database does not answer"
        except StoreError as error:
            return type(error).__name__
        return None


async def get_health() -> Alive:
    """Answer, which shows that the process runs."""
    return Alive()


async def get_readiness(request: Request) -> Alive:
    """Return whether the database can be reached and has the right schema."""
    problem = await context_of(request).server.readiness.problem()
    if problem is not None:
        raise Refusal(UNAVAILABLE, f"not ready: {problem}", {"retry-after": "1"})
    return Alive()


ROUTES = (
    Route("GET", "/healthz", PUBLIC, get_health),
    Route("GET", "/readyz", PUBLIC, get_readiness),
)
