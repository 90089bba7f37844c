"""Requeues that try a few letters first."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import Field

from windlass.core.access import Role
from windlass.core.canary import MOST_CANARIES, Canary
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME
from windlass.core.letters import LetterFilter
from windlass.core.record import shaped
from windlass.web.dead_letters import LetterFilterIn
from windlass.web.fields import Body, Limit, Listed, capped
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire.operations import CanaryOut

CanaryId = Annotated[int, Path(ge=1, le=MAX_JOB)]


class CanaryIn(Body):
    """Which letters to requeue, and how many of them first."""

    size: Annotated[int, Field(ge=1, le=MOST_CANARIES)]
    """How many go first; the others follow once those have succeeded."""
    filter: LetterFilterIn
    """An empty filter means every letter that nothing has closed."""


class CanariesOut(Listed):
    """Canary requeues, the newest first."""

    canaries: list[CanaryOut]


def canary_out(canary: Canary) -> CanaryOut:
    """Show a canary requeue."""
    return shaped(CanaryOut, canary, jobs=tuple(one.job_id for one in canary.runs))


async def start_canary(request: Request, body: CanaryIn) -> CanaryOut:
    """Bring back the first few letters; upkeep brings back the rest once those have succeeded, and stops when one fails."""
    wanted = LetterFilter(task=body.filter.task, fingerprint=body.filter.fingerprint)
    by = context_of(request).principal.name[:MAX_NAME]
    return canary_out(await operator_of(request).canaries.start(wanted, size=body.size, by=by))


async def list_canaries(
    request: Request,
    is_active: Annotated[bool | None, Query(alias="active", description="Only those under way, or only others.")] = None,
    limit: Limit = 50,
) -> CanariesOut:
    """List canary requeues, the newest first."""
    found = await reader_of(request).canaries.list(is_active=is_active, limit=capped(limit))
    shown = [canary_out(one) for one in found]
    return CanariesOut(canaries=shown, total=len(shown), is_total_exact=len(shown) < capped(limit))


async def get_canary(request: Request, id: CanaryId) -> CanaryOut:  # noqa: A002 - the path's name
    """Read how far a canary requeue has come."""
    return canary_out(await reader_of(request).canaries.get(id))


async def cancel_canary(request: Request, id: CanaryId) -> CanaryOut:  # noqa: A002 - the path's name
    """Leave the letters that were not brought back yet where they are; jobs that came back go on."""
    return canary_out(await operator_of(request).canaries.cancel(id))


ROUTES = (
    Route("GET", "/api/v1/dead-letters/canaries", Role.VIEWER, list_canaries),
    Route("POST", "/api/v1/dead-letters/canaries", Role.OPERATOR, start_canary, status=201, errors=(404, 409)),
    Route("GET", "/api/v1/dead-letters/canaries/{id}", Role.VIEWER, get_canary, errors=(404,)),
    Route("POST", "/api/v1/dead-letters/canaries/{id}/cancel", Role.OPERATOR, cancel_canary, errors=(404, 409)),
)
