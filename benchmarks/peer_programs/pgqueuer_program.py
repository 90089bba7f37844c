# /// script
# requires-python = ">=3.11"
# dependencies = ["pgqueuer[asyncpg]", "uvloop"]
# ///
"""PgQueuer."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from program import ADDRESS, FILLER, About, Peer, lane_of, lanes, main, note

BATCH = 500


class PgQueuerPeer(Peer):
    """PgQueuer as its guide to performance asks for it."""

    loop_factory = staticmethod(uvloop.new_event_loop)

    async def prepare(self) -> None:
        """Install, then set the autovacuum that the guide asks for."""
        connection = await asyncpg.connect(ADDRESS)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    async def open(self) -> None:
        """Open a pool, as the guide recommends for producers."""
        self._pool = await asyncpg.create_pool(ADDRESS, min_size=2, max_size=10)
        self._queries = Queries(AsyncpgPoolDriver(self._pool))

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        await self._queries.enqueue(lane_of(number), json.dumps({"number": number, "filler": FILLER}).encode())

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue by lists."""
        payloads = [json.dumps({"number": number, "filler": FILLER}).encode() for number in numbers]
        await self._queries.enqueue([lane_of(number) for number in numbers], payloads, [0] * len(numbers))

    def work(self) -> None:
        """Run the manager."""
        logging.getLogger("pgqueuer").setLevel(logging.WARNING)
        uvloop.run(self._run())

    async def _run(self) -> None:
        async with asyncpg.create_pool(ADDRESS, min_size=5, max_size=20) as pool:
            queuer = PgQueuer(AsyncpgPoolDriver(pool))

            async def work(job: Job) -> None:
                note(json.loads(job.payload or b"{}")["number"])

            for lane in lanes():
                queuer.entrypoint(lane)(work)
            await queuer.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))
            await asyncio.sleep(0)


if __name__ == "__main__":
    main(
        PgQueuerPeer(),
        About(
            title="PgQueuer",
            package="pgqueuer",
            tuning=f"asyncpg pool (5 to 20), uvloop, `batch_size={BATCH}`, `pgq autovac` applied; "
            "durability `durable` (its default)",
            history="default: a finished job leaves the queue table; the log keeps a row each for queued, picked and successful",
            crash="at least once; a job whose heartbeat stops is given to another worker after 30 s; every commit is synced",
            left="select count(*) from (select 1 from pgqueuer limit 1) as waiting",
            ended="select count(*) from pgqueuer_log where status = 'successful'",
            finished=(
                """
                insert into pgqueuer_log (job_id, status, priority, entrypoint, aggregated, created)
                select n, status::pgqueuer_status, 0, 'lane-0', true, now() + n * interval '5 ms'
                from generate_series(-{rows}, -1) as n, unnest(array['queued', 'picked', 'successful']) as status""",
            ),
            has_lanes=True,
            versions=("asyncpg", "uvloop"),
        ),
    )
