"""The frame of every page: the links to the others, the user, and the database's time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from fastapi import Request, Response
from markupsafe import Markup

from windlass import __version__
from windlass.core.access import Role
from windlass.store.stored_jobs import StoredJobs
from windlass.web.dashboard import times
from windlass.web.request_context import context_of
from windlass.web.templates import fragment, page


class Tab(NamedTuple):
    """A page that the frame links to."""

    path: str
    label: str
    key: str
    """The letter that opens it after `g`."""
    least: Role = Role.VIEWER


TABS = (
    Tab("/", "Overview", "o"),
    Tab("/alerts", "Alerts", "s"),
    Tab("/jobs", "Jobs", "j"),
    Tab("/recurring", "Recurring", "r"),
    Tab("/dead", "Dead letters", "d"),
    Tab("/workers", "Workers", "w"),
    Tab("/lanes", "Lanes", "l"),
    Tab("/tasks", "Tasks", "t"),
    Tab("/breakers", "Breakers", "b"),
    Tab("/trends", "Trends", "m"),
    Tab("/items", "Items", "i"),
    Tab("/audit", "Audit", "a", Role.ADMIN),
    Tab("/settings", "Settings", "e", Role.ADMIN),
    Tab("/reference", "API", "p"),
)


async def now(request: Request) -> datetime:
    """Return the database's time, by which everything on a page is as old as it is."""
    return await StoredJobs(context_of(request).app).clock()


def draw(request: Request, template: str, at: datetime, *, here: str, title: str, status: int = 200, **values: Any) -> Response:
    """Fill in a page; `here` is the path of its tab."""
    context = context_of(request)
    principal = context.principal
    return page(
        f"dashboard/{template}",
        status,
        base=context.base,
        here=here,
        title=title,
        tabs=[tab for tab in TABS if principal.may(tab.least)],
        version=__version__,
        **_shared(request, at),
        **values,
    )


def draw_board(request: Request, template: str, at: datetime, **values: Any) -> Markup:
    """Fill in what a page shows inside the frame, for a page that keeps it."""
    return fragment(f"dashboard/{template}", **_shared(request, at), **values)


def _shared(request: Request, at: datetime) -> dict[str, Any]:
    principal = context_of(request).principal
    return {
        "at": at,
        "principal": principal,
        # Only a browser's session can prove that a click is meant.
        "may_operate": principal.may(Role.OPERATOR) and principal.csrf is not None,
        "may_administer": principal.may(Role.ADMIN) and principal.csrf is not None,
        "age": lambda since: times.age(since, at),
        "until": lambda moment: times.until(moment, at),
        "short_ms": times.short_ms,
    }
