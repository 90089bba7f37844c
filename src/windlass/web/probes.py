"""What load balancers and supervisors ask: is it up, is it ready."""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import Literal

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from windlass.app import Windlass
from windlass.errors import SchemaError, SchemaTooNew, SchemaTooOld, StoreError
from windlass.web.errors import UNAVAILABLE
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route

PROBES = frozenset({b"/healthz", b"/readyz"})
_FRESH_S = 1.0
_PATIENCE_S = 5.0


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class NotReadyReason(StrEnum):
    """Why a server is not ready, for programs."""

    STOPPING = "stopping"
    DATABASE_UNREACHABLE = "database_unreachable"
    DATABASE_SILENT = "database_silent"
    SCHEMA_OLD = "schema_old"
    SCHEMA_NEW = "schema_new"
    SCHEMA_WRONG = "schema_wrong"


# Fixed texts: no credential is needed, and an error's own text may name hosts and users.
_TEXTS = {
    NotReadyReason.STOPPING: "the server is stopping",
    NotReadyReason.DATABASE_UNREACHABLE: "the database cannot be reached",
    NotReadyReason.DATABASE_SILENT: f"the database does not answer within {_PATIENCE_S:g} seconds",
    NotReadyReason.SCHEMA_OLD: "the database's schema is older than this version of Windlass; run `windlass migrate`",
    NotReadyReason.SCHEMA_NEW: "the database's schema is newer than this version of Windlass; upgrade it",
    NotReadyReason.SCHEMA_WRONG: "the database has no tables of Windlass, or other ones; run `windlass migrate`",
}


class NotReadyBecause(BaseModel):
    """One reason."""

    reason: NotReadyReason
    message: str


class NotReady(BaseModel):
    """Why no requests should be sent here."""

    status: Literal["not ready"] = "not ready"
    error: str
    reasons: list[NotReadyBecause]


class Readiness:
    """Asks the database at most once a second, however many ask us."""

    def __init__(self, app: Windlass, stopping: asyncio.Event) -> None:
        """Start empty."""
        self._app = app
        self._stopping = stopping
        self._lock = asyncio.Lock()
        self._asked_at = -_FRESH_S
        self._reason: NotReadyReason | None = None

    async def reasons(self) -> list[NotReadyReason]:
        """Return what is wrong; nothing when all is well."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= _FRESH_S:
                self._reason = await self._ask()
                self._asked_at = time.monotonic()
        stopping = [NotReadyReason.STOPPING] if self._stopping.is_set() else []
        return stopping if self._reason is None else [*stopping, self._reason]

    async def _ask(self) -> NotReadyReason | None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await (await self._app.store()).check_schema()
        except TimeoutError:
            return NotReadyReason.DATABASE_SILENT
        except SchemaTooOld:
            return NotReadyReason.SCHEMA_OLD
        except SchemaTooNew:
            return NotReadyReason.SCHEMA_NEW
        except SchemaError:
            return NotReadyReason.SCHEMA_WRONG
        except StoreError:
            return NotReadyReason.DATABASE_UNREACHABLE
        return None


async def get_health() -> Alive:
    """Answer, which shows that the process runs."""
    return Alive()


async def get_readiness(request: Request) -> Alive:
    """Return whether the database can be reached and has the right schema, and if not, why."""
    found = await context_of(request).server.readiness.reasons()
    if not found:
        return Alive()
    reasons = [NotReadyBecause(reason=reason, message=_TEXTS[reason]) for reason in found]
    told = NotReady(error=f"not ready: {'; '.join(one.message for one in reasons)}", reasons=reasons)
    return JSONResponse(told.model_dump(mode="json"), UNAVAILABLE, {"retry-after": "1"})  # type: ignore[return-value]  # see NotReady


ROUTES = (
    Route("GET", "/healthz", PUBLIC, get_health),
    Route("GET", "/readyz", PUBLIC, get_readiness, others={UNAVAILABLE: NotReady}),
)
