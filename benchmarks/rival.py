"""PgQueuer on the same server: enqueue no-op jobs, drain them in one process, print jobs per second."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta

import asyncpg  # type: ignore[import-untyped]
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 200


async def drain(dsn: str, jobs: int) -> float:
    """Measure the drain alone, with batches as large as ours."""
    connection = await asyncpg.connect(dsn)
    try:
        driver = AsyncpgDriver(connection)
        queries = Queries(driver)
        await queries.install()
        await queries.enqueue(["work"] * jobs, [None] * jobs, [0] * jobs)
        queuer = PgQueuer(driver)
        ran = 0

        @queuer.entrypoint("work")
        async def work(_: Job) -> None:
            nonlocal ran
            ran += 1

        started = time.perf_counter()
        await queuer.run(batch_size=BATCH, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1))
        spent = time.perf_counter() - started
        if ran != jobs:
            raise SystemExit(f"{ran} of {jobs} jobs ran")
        await queries.uninstall()
        return jobs / spent
    finally:
        await connection.close()


if __name__ == "__main__":
    print(asyncio.run(drain(sys.argv[1], int(sys.argv[2]))))
