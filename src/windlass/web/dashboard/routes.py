"""Every page of the dashboard."""

from __future__ import annotations

from windlass.web.dashboard import (
    alerts,
    audit,
    breakers,
    correlation,
    dead,
    feeds,
    items,
    job,
    jobs,
    lanes,
    overview,
    pages,
    recurring,
    settings,
    task,
    tasks,
    trends,
    workers,
)
from windlass.web.route import Route

_PAGES = (
    *(overview, alerts, jobs, job, correlation, recurring, dead, workers, lanes, tasks, task, trends, breakers),
    *(items, pages, feeds, audit, settings),
)
ROUTES: tuple[Route, ...] = tuple(route for page in _PAGES for route in page.ROUTES)
