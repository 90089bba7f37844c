"""The audit log, read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request

from windlass.core.access import Role
from windlass.core.audit import AuditEntry, AuditFilter
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_KEY
from windlass.core.record import shaped
from windlass.web.fields import LINE, Instant, Limit, Listed, capped
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.wire import answer

Word = Annotated[str | None, Query(min_length=1, max_length=MAX_KEY, pattern=LINE)]


@answer
class AuditOut:
    """A line of the log."""

    id: int
    at: datetime
    principal: str
    action: str
    target: str | None
    outcome: str
    details: dict[str, Any] | None
    request_id: str | None
    place: int | None
    chain: str | None


class AuditsOut(Listed):
    """Lines, newest first."""

    audit: list[AuditOut]
    next: int | None
    """Send it as `before` for the next page."""


def _out(entry: AuditEntry) -> AuditOut:
    return shaped(AuditOut, entry)


async def list_audit(  # noqa: PLR0917 - the parameters of the query, by name
    request: Request,
    principal: Word = None,
    action: Word = None,
    target: Word = None,
    since: Annotated[Instant | None, Query()] = None,
    before: Annotated[int, Query(ge=1, le=MAX_JOB)] = MAX_JOB,
    limit: Limit = 100,
) -> AuditsOut:
    """List changes and refusals, each with its principal."""
    wanted = AuditFilter(principal=principal, action=action, target=target, since=since)
    audit = reader_of(request).audit
    found = await audit.list(wanted, before=before, limit=capped(limit))
    counted = await audit.count(wanted)
    last = found[-1].id if len(found) == capped(limit) else None
    return AuditsOut(audit=[_out(entry) for entry in found], total=counted.total, is_total_exact=counted.is_exact, next=last)


ROUTES = (Route("GET", "/api/v1/audit", Role.ADMIN, list_audit, is_costly=True),)
