"""The processes that run jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import Request

from windlass.core.access import Role
from windlass.core.record import shaped
from windlass.core.worker import WorkerRecord
from windlass.web.fields import Limit, Listed, PathName, capped
from windlass.web.request_context import operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer


@answer
class StartedOut:
    """A job that a worker runs."""

    id: int
    task: str
    started_at: datetime


@answer
class WorkerOut:
    """A process; `running` comes from its last heartbeat, `jobs` from its leases."""

    id: str
    kind: str
    host: str
    pid: int
    version: str
    pools: dict[str, Any]
    tasks: list[Any]
    running: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    is_online: bool
    app_version: str | None
    """The version of the application, beside that of Windlass."""
    loop_blocks: int
    """How many times a handler was found to block the event loop."""
    paused_at: datetime | None
    """Since when it is to claim nothing; what it has claimed is run to its end."""
    paused_by: str | None
    cpu_percent: int | None
    """What its process took of one core between its last two heartbeats; null before the first."""
    memory_mb: int | None
    """What its process held at its last heartbeat."""
    jobs: list[StartedOut]


class WorkersOut(Listed):
    """Processes, last seen first."""

    workers: list[WorkerOut]


def _out(worker: WorkerRecord) -> WorkerOut:
    return shaped(WorkerOut, worker, jobs=[shaped(StartedOut, job) for job in worker.jobs])


async def list_workers(request: Request, limit: Limit = 500) -> WorkersOut:
    """List the processes that run jobs, with what they run."""
    found = await reader_of(request).workers.list(limit=capped(limit))
    return WorkersOut(workers=[_out(one) for one in found], total=len(found), is_total_exact=len(found) < capped(limit))


async def pause_worker(request: Request, id: PathName) -> WorkerOut:  # noqa: A002 - the path's name
    """Let a worker claim nothing more, within seconds; it runs what it has claimed, and a new process claims again."""
    return _out(await operator_of(request).workers.pause(id))


async def resume_worker(request: Request, id: PathName) -> WorkerOut:  # noqa: A002 - the path's name
    """Let a worker claim again."""
    return _out(await operator_of(request).workers.resume(id))


ROUTES = (
    Route("GET", "/api/v1/workers", Role.VIEWER, list_workers, is_costly=True),
    Route("POST", "/api/v1/workers/{id}/pause", Role.OPERATOR, pause_worker, errors=(404,)),
    Route("POST", "/api/v1/workers/{id}/resume", Role.OPERATOR, resume_worker, errors=(404,)),
)
