"""When something that repeats would run: a look ahead, before it is made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import Query, Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.cadence_text import describe
from windlass.core.preview import MOST, Fire, Shift, preview
from windlass.errors import InvalidInput
from windlass.store.stored_jobs import StoredJobs
from windlass.web.fields import Instant
from windlass.web.job_forms import CronText, Zone, read_rule
from windlass.web.request_context import context_of
from windlass.web.route import Route

_SECOND = timedelta(seconds=1)


class FireOut(BaseModel):
    """One time: the instant, what a clock on the wall shows, and how far that is from UTC."""

    at: datetime
    local: str
    """Without an offset, as in `2026-03-29T03:00:00`."""
    utc_offset_seconds: int
    shift: Shift | None
    """`moved`: the planned time does not exist on that day. `repeated`: the clock shows it twice."""


class PreviewOut(BaseModel):
    """When a rule fires, as a text and as times."""

    in_words: str
    timezone: str
    times: list[FireOut]
    """As if each run took no time; fewer where the rule ends before."""


class AskedRule(NamedTuple):
    """When something repeats, as a query asks for it."""

    every: str | None
    cron: str | None
    timezone: str | None
    start_at: datetime | None


def fire_out(fire: Fire) -> FireOut:
    """Show a time."""
    local = fire.local.replace(tzinfo=None).isoformat(timespec="seconds")
    return FireOut(at=fire.at, local=local, utc_offset_seconds=fire.utc_offset // _SECOND, shift=fire.shift)


async def preview_schedule(  # noqa: PLR0917 - the parameters of the query, by name
    request: Request,
    every: Annotated[str | None, Query(min_length=1, max_length=100, description="As in `90s`, `15m` or `1h30m`.")] = None,
    cron: Annotated[CronText | None, Query(description="Five fields, a name such as `@daily`, or `@every 90m`.")] = None,
    timezone: Annotated[Zone | None, Query(description="An IANA name; UTC if it is left out.")] = None,
    start_at: Annotated[Instant | None, Query()] = None,
    count: Annotated[int, Query(ge=1, le=MOST)] = 5,
) -> PreviewOut:
    """List the next times of something that repeats, if it were made now; refuses what making it would refuse."""
    rule = read_rule(AskedRule(every, cron, timezone, start_at))
    if rule is None:
        raise InvalidInput("every", None, "give every or cron")
    now = await StoredJobs(context_of(request).app).clock()
    times = [fire_out(fire) for fire in preview(rule, now, count)]
    return PreviewOut(in_words=describe(rule.cadence, rule.timezone), timezone=rule.timezone, times=times)


ROUTES = (Route("GET", "/api/v1/schedules/preview", Role.VIEWER, preview_schedule),)
