"""Chores: the upkeep that one process of many does for each interval."""

from __future__ import annotations

from datetime import datetime

from fastapi import Request

from windlass.core.access import Role
from windlass.core.chore import Chore
from windlass.core.record import shaped
from windlass.web.fields import Listed, PathName
from windlass.web.request_context import context_of, operator_of
from windlass.web.route import Route
from windlass.wire import answer


@answer
class ChoreOut:
    """A chore and how it went the last time."""

    name: str
    is_paused: bool
    paused_at: datetime | None
    due_at: datetime | None
    last_run_at: datetime | None
    last_rows: int | None
    """How many rows it changed."""
    last_duration_ms: int | None
    last_error: str | None
    worker: str | None
    """Which process did it."""


class ChoresOut(Listed):
    """Every chore that was ever due, by name."""

    chores: list[ChoreOut]


def _out(chore: Chore) -> ChoreOut:
    return shaped(ChoreOut, chore, is_paused=chore.paused_at is not None)


async def _get(request: Request, name: str) -> Chore:
    """Read a chore; one that was never due has nothing but its name."""
    found = {chore.name: chore for chore in await context_of(request).app.chores.list()}
    nothing = Chore(name, 0, *[None] * 8)
    return found.get(name, nothing)


async def list_chores(request: Request) -> ChoresOut:
    """List the chores and how each went the last time."""
    found = [_out(one) for one in await context_of(request).app.chores.list()]
    return ChoresOut(chores=found, total=len(found))


async def pause_chore(request: Request, name: PathName) -> ChoreOut:
    """Let no process do a chore from now on."""
    await operator_of(request).chores.pause(name)
    return _out(await _get(request, name))


async def resume_chore(request: Request, name: PathName) -> ChoreOut:
    """Let processes do a chore again; one that is overdue is due at once."""
    await operator_of(request).chores.resume(name)
    return _out(await _get(request, name))


ROUTES = (
    Route("GET", "/api/v1/chores", Role.VIEWER, list_chores),
    Route("POST", "/api/v1/chores/{name}/pause", Role.ADMIN, pause_chore, errors=(404,)),
    Route("POST", "/api/v1/chores/{name}/resume", Role.ADMIN, resume_chore, errors=(404,)),
)
