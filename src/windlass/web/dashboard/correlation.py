"""A correlation: every job that came of one action, along one axis of time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_KEY
from windlass.core.one_line import one_line
from windlass.errors import InvalidInput, JobNotFound
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.time_line import waterfall
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.web.templates import name_in_path

_SIZE = 100


def correlation_path(correlation_id: str) -> str:
    """Return the address of a correlation's page."""
    return f"/correlations/{name_in_path(correlation_id)}"


async def show_correlation(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=MAX_KEY)],  # noqa: A002 - the path's name
    after: Annotated[int, Query(ge=0, le=MAX_JOB)] = 0,
) -> Response:
    """Show the jobs of a correlation; a job's number or UUID means the correlation of that job."""
    try:
        found = await reader_of(request).trace(id, after=after, limit=_SIZE)
    except (JobNotFound, InvalidInput):
        at = await now(request)
        what = f"correlation {one_line(id)}"
        return draw(request, "missing.html", at, here="/jobs", title="No such correlation", status=404, what=what)
    path = correlation_path(id)
    return draw(
        request,
        "correlation.html",
        found.at,
        here="/jobs",
        title="Correlation",
        trace=found,
        drawn=waterfall(found),
        path=path,
        after=after,
        next=None if found.is_complete else f"{path}?after={found.last_id}",
    )


ROUTES = (Route("GET", "/correlations/{id}", Role.VIEWER, show_correlation, is_page=True, is_costly=True),)
