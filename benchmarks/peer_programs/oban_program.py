# /// script
# requires-python = ">=3.12"
# dependencies = ["oban", "psycopg[binary]", "uvloop"]
# ///
"""Oban for Python."""

from __future__ import annotations

import asyncio
import logging

import uvloop
from oban import Oban, worker
from oban.schema import install
from program import ADDRESS, FILLER, About, Peer, lane_of, lanes, main, note

LIMIT = 200


@worker(queue="lane-0")
class Work:
    """Do nothing."""

    async def process(self, job) -> None:  # noqa: ANN001 - as its documentation writes it
        """Do nothing."""
        note(job.args["number"])


class ObanPeer(Peer):
    """Oban."""

    loop_factory = staticmethod(uvloop.new_event_loop)

    async def prepare(self) -> None:
        """Install the schema."""
        pool = await Oban.create_pool(ADDRESS)
        await install(pool)
        await pool.close()

    async def open(self) -> None:
        """Open a client."""
        self._pool = await Oban.create_pool(ADDRESS, min_size=2, max_size=10)
        self._oban = await Oban(pool=self._pool).__aenter__()

    async def close(self) -> None:
        """Close it."""
        await self._oban.__aexit__(None, None, None)
        await self._pool.close()

    async def enqueue(self, number: int) -> None:
        """Insert one."""
        await self._oban.enqueue(Work.new({"number": number, "filler": FILLER}, queue=lane_of(number)))

    async def enqueue_many(self, numbers: range) -> None:
        """Insert many."""
        await self._oban.enqueue_many(
            [Work.new({"number": number, "filler": FILLER}, queue=lane_of(number)) for number in numbers]
        )

    def work(self) -> None:
        """Run its queues."""
        logging.basicConfig(level=logging.WARNING)
        uvloop.run(self._run())

    async def _run(self) -> None:
        pool = await Oban.create_pool(ADDRESS, min_size=4, max_size=20)
        async with Oban(pool=pool, queues=dict.fromkeys(lanes(), LIMIT)):
            await asyncio.Event().wait()


if __name__ == "__main__":
    main(
        ObanPeer(),
        About(
            title="Oban for Python",
            package="oban",
            tuning=f"queue limit {LIMIT}, psycopg's C build, pool (4 to 20), uvloop as its own command uses",
            history="default: finished jobs stay for a day, pruned every minute",
            crash="at least once (lifeline rescues jobs of lost nodes); every commit is synced",
            left="select count(*) from (select 1 from oban_jobs where state in ('available', 'executing', 'retryable') limit 1)"
            " as waiting",
            ended="select count(*) from oban_jobs where state = 'completed'",
            finished=(
                """
                insert into oban_jobs (state, queue, worker, attempt, args, attempted_at, completed_at)
                select 'completed', 'lane-0', '__main__.Work', 1, '{{"number":7,"filler":"{filler}"}}',
                    timezone('UTC', now()), timezone('UTC', now())
                from generate_series(1, {rows})""",
            ),
            has_lanes=True,
            versions=("psycopg", "uvloop"),
        ),
    )
