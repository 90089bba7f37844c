"""The processes that run jobs: their slots, and what runs in them."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request, Response

from windlass.core.access import Role
from windlass.core.worker import PULLING, WorkerRecord
from windlass.web.dashboard.frame import draw, now
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 200
_CELLS = 64


class WorkerRow(NamedTuple):
    """A worker with a cell for each slot, as many as can be shown."""

    worker: WorkerRecord
    name: str
    pools: dict[str, int]
    tasks: list[str]
    slots: int
    free: int
    is_pulling: bool


def worker_row(worker: WorkerRecord) -> WorkerRow:
    """Lay out a worker."""
    is_pulling = worker.kind == PULLING
    pools: dict[str, int] = {} if is_pulling else worker.pools
    slots = sum(pools.values())
    return WorkerRow(
        worker=worker,
        name=worker.id if is_pulling else f"{worker.host}:{worker.pid}",
        pools=pools,
        tasks=worker.tasks,
        slots=slots,
        free=max(0, min(slots, _CELLS) - len(worker.jobs)),
        is_pulling=is_pulling,
    )


async def show_workers(request: Request) -> Response:
    """Show the workers, those that are online first."""
    at = await now(request)
    found = await reader_of(request).workers.list(limit=_SIZE)
    rows = [worker_row(one) for one in sorted(found, key=lambda one: (not one.is_online, one.started_at))]
    return draw(
        request,
        "workers.html",
        at,
        here="/workers",
        title="Workers",
        online=[row for row in rows if row.worker.is_online],
        gone=[row for row in rows if not row.worker.is_online],
    )


ROUTES = (Route("GET", "/workers", Role.VIEWER, show_workers, is_page=True, is_costly=True),)
