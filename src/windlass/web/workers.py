"""The processes that run jobs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.worker import WorkerRecord
from windlass.web.fields import Limit, Listed, capped
from windlass.web.request_context import reader_of
from windlass.web.route import Route


class StartedOut(BaseModel):
    """A job that a worker runs."""

    id: int
    task: str
    started_at: datetime


class WorkerOut(BaseModel):
    """A process; `running` is what its last heartbeat said, `jobs` what its leases say."""

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
    loop_blocks: int
    """How many times a handler was found to block the event loop."""
    jobs: list[StartedOut]


class WorkersOut(Listed):
    """Processes, last seen first."""

    workers: list[WorkerOut]


def _out(worker: WorkerRecord) -> WorkerOut:
    return WorkerOut(
        id=worker.id,
        kind=worker.kind,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        pools=json.loads(worker.pools),
        tasks=json.loads(worker.tasks),
        running=worker.running,
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        stopped_at=worker.stopped_at,
        is_online=worker.is_online,
        loop_blocks=worker.loop_blocks,
        jobs=[StartedOut(id=job.id, task=job.task, started_at=job.started_at) for job in worker.jobs],
    )


async def list_workers(request: Request, limit: Limit = 500) -> WorkersOut:
    """List the processes that run jobs, with what they run."""
    found = await reader_of(request).workers.list(limit=capped(limit))
    return WorkersOut(workers=[_out(one) for one in found], total=len(found), is_total_exact=len(found) < capped(limit))


ROUTES = (Route("GET", "/api/v1/workers", Role.VIEWER, list_workers, is_costly=True),)
