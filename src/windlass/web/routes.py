"""The table of routes: what is not here does not exist. A face adds its rows by adding its module."""

from __future__ import annotations

from windlass.web import (
    admin_jobs,
    admin_schedules,
    audit,
    breakers,
    bulk,
    chores,
    correlations,
    dead_letters,
    events,
    executions,
    job_verbs,
    jobs,
    lanes,
    login,
    pages,
    probes,
    settings,
    sources,
    stats,
    tasks,
    tokens,
    workers,
)
from windlass.web.route import Route

ROUTES: tuple[Route, ...] = (
    *probes.ROUTES,
    *login.ROUTES,
    *pages.ROUTES,
    *tokens.ROUTES,
    *audit.ROUTES,
    *workers.ROUTES,
    *lanes.ROUTES,
    *tasks.ROUTES,
    *settings.ROUTES,
    *sources.ROUTES,
    *jobs.ROUTES,
    *job_verbs.ROUTES,
    *executions.ROUTES,
    *stats.ROUTES,
    *bulk.ROUTES,
    *admin_jobs.ROUTES,
    *admin_schedules.ROUTES,
    *dead_letters.ROUTES,
    *breakers.ROUTES,
    *correlations.ROUTES,
    *chores.ROUTES,
    *events.ROUTES,
)
