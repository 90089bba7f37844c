"""Explanations: why a job, a lane or a task does or does not move."""

from __future__ import annotations

from fastapi import Request

from windlass.core.access import Role
from windlass.core.explanation import Explanation
from windlass.web.fields import PathName
from windlass.web.jobs import JobId
from windlass.web.request_context import reader_of
from windlass.web.route import Route


async def explain_job(request: Request, id: JobId) -> Explanation:  # noqa: A002 - the path's name
    """Explain why a job does not run, or why it ran when it did: every gate, and the command to type first."""
    return await reader_of(request).explain(id)


async def explain_lane(request: Request, name: PathName) -> Explanation:
    """Explain why the jobs of a lane do or do not move; an unknown name is 404 with the nearest ones."""
    return await reader_of(request).lanes.explain(name)


async def explain_task(request: Request, name: PathName) -> Explanation:
    """Explain why the jobs of a task do or do not move; an unknown name is 404 with the nearest ones."""
    return await reader_of(request).known_tasks.explain(name)


ROUTES = (
    Route("GET", "/api/v1/jobs/{id}/explain", Role.VIEWER, explain_job, errors=(404,), is_costly=True),
    Route("GET", "/api/v1/lanes/{name}/explain", Role.VIEWER, explain_lane, errors=(404,), is_costly=True),
    Route("GET", "/api/v1/tasks/{name}/explain", Role.VIEWER, explain_task, errors=(404,), is_costly=True),
)
