"""The audit log: changes and refusals, each with its principal."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.audit import AuditFilter
from windlass.core.ids import MAX_JOB
from windlass.web.audit import Word
from windlass.web.dashboard.frame import draw, now
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 100


async def show_audit(
    request: Request,
    *,
    principal: Word = None,
    action: Word = None,
    target: Word = None,
    before: Annotated[int, Query(ge=1, le=MAX_JOB)] = MAX_JOB,
) -> Response:
    """Show lines of the log, newest first."""
    at = await now(request)
    audit = reader_of(request).audit
    wanted = AuditFilter(principal=principal, action=action, target=target)
    found = await audit.list(wanted, before=before, limit=_SIZE)
    following = found[-1].id if len(found) == _SIZE else None
    return draw(request, "audit.html", at, here="/audit", title="Audit log", entries=found, wanted=wanted, next=following)


ROUTES = (Route("GET", "/audit", Role.ADMIN, show_audit, is_page=True, is_costly=True),)
