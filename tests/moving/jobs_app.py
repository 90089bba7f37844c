"""An application whose database has something of everything after a while."""

from __future__ import annotations

import asyncio

from windlass import Windlass
from windlass.core.audit import Actor
from windlass.core.job import JobState
from windlass.testing import run_all

JOBS = 12
DEAD = 3


def make_app(url: str) -> Windlass:
    app = Windlass(url)

    @app.task
    async def add(one: int, other: float) -> float:
        return one + other

    @app.task(max_attempts=1)
    async def fail(why: str) -> None:
        raise ValueError(why)

    return app


def work_through(url: str) -> None:
    """Leave finished jobs, dead letters, waiting jobs, a schedule, a source, a setting, a token and a chained audit log."""
    asyncio.run(_work_through(make_app(url)))


async def _work_through(app: Windlass) -> None:
    async with app:
        for n in range(JOBS):
            await app.enqueue("add", {"one": n, "other": 0.5}, correlation_id=f"order-{n % 5}")
        for n in range(DEAD):
            await app.enqueue("fail", {"why": f"no {n} 'Ω'"})
        await run_all(app)
        for n in range(JOBS):
            await app.enqueue("add", {"one": n, "other": 1.0}, delay="1h", unique_key=f"later-{n}")
        await app.recurring("nightly", "add", "30 3 * * *", {"one": 1, "other": 2}, timezone="Europe/Berlin")
        store = (await app.store()).acting(Actor("ada"))
        await store.settings.set("BACKOFF_BASE_SEC", "45")
        await store.pause([2 * JOBS + DEAD + 1])
        await store.delete([1])
        await store.audit.chain()
        for worker in await store.workers.list():
            await store.workers.stopped(worker.id)
        assert [(await app.get(job)).state for job in (2, JOBS + 1)] == [JobState.COMPLETED, JobState.FAILED]
