"""Tasks of the fleet: list, pause, resume, drain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request

from windlass.core.access import Role
from windlass.core.job import MAX_NAME, JobState
from windlass.core.known_task import KnownTask
from windlass.core.record import shaped
from windlass.web.errors import Refusal
from windlass.web.fields import Limit, Listed, PathName, capped
from windlass.web.gates import Force, chosen
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer
from windlass.wire.operations import DrainOut, GateOut, TaskOut


@answer
class TaskDetailOut(TaskOut):
    """A task with its jobs by state."""

    counts: Mapping[JobState, int]
    """States without jobs are left out."""


class TasksOut(Listed):
    """Tasks by name."""

    tasks: list[TaskOut]
    next: str | None
    """Send it as `after` for the next page."""


def _out(task: KnownTask) -> TaskOut:
    return shaped(TaskOut, task, is_paused=task.paused_at is not None)


async def list_tasks(request: Request, after: Annotated[str, Query(max_length=MAX_NAME)] = "", limit: Limit = 100) -> TasksOut:
    """List the tasks that processes declared; entries outlive their processes."""
    tasks = reader_of(request).known_tasks
    found = await tasks.list(after=after, limit=capped(limit))
    counted = await tasks.count()
    last = found[-1].name if len(found) == capped(limit) else None
    return TasksOut(tasks=[_out(one) for one in found], total=counted.total, is_total_exact=counted.is_exact, next=last)


async def get_task(request: Request, name: PathName) -> TaskDetailOut:
    """Read one task with its jobs by state."""
    app = context_of(request).app
    found = await app.known_tasks.get(name)
    if found is None:
        raise Refusal(404, f"task {name!r} not found: no process has declared it; GET /api/v1/tasks lists them")
    counts: Counter[JobState] = Counter()
    for one in await app.counts():
        if one.task == name:
            counts[one.state] += one.jobs
    return shaped(TaskDetailOut, _out(found), counts=counts)


async def pause_task(request: Request, name: PathName, *, force: Force = False) -> GateOut:
    """Let no job of a task be claimed from now on; what runs goes on."""
    tasks = await chosen(operator_of(request).known_tasks, name, force=force)
    return shaped(GateOut, await tasks.pause(name))


async def resume_task(request: Request, name: PathName, *, force: Force = False) -> GateOut:
    """Let the jobs of a task be claimed again."""
    tasks = await chosen(operator_of(request).known_tasks, name, force=force)
    return shaped(GateOut, await tasks.resume(name))


async def drain_task(request: Request, name: PathName, *, force: Force = False) -> DrainOut:
    """Pause a task and count what still runs of it."""
    tasks = await chosen(operator_of(request).known_tasks, name, force=force)
    return shaped(DrainOut, await tasks.drain(name))


ROUTES = (
    Route("GET", "/api/v1/tasks", Role.VIEWER, list_tasks, is_costly=True),
    Route("GET", "/api/v1/tasks/{name}", Role.VIEWER, get_task, errors=(404,)),
    Route("POST", "/api/v1/tasks/{name}/pause", Role.OPERATOR, pause_task, errors=(404,)),
    Route("POST", "/api/v1/tasks/{name}/resume", Role.OPERATOR, resume_task, errors=(404,)),
    Route("POST", "/api/v1/tasks/{name}/drain", Role.OPERATOR, drain_task, errors=(404,)),
)
