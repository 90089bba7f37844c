# /// script
# requires-python = ">=3.11"
# dependencies = ["procrastinate", "psycopg[binary]"]
# ///
"""Procrastinate."""

from __future__ import annotations

import asyncio
import logging

import procrastinate
from program import ADDRESS, FILLER, LANES, About, Peer, lane_of, main, note

CONCURRENCY = 10
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=ADDRESS, min_size=4, max_size=20))


@app.task(name="work", queue="lane-0")
async def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class ProcrastinatePeer(Peer):
    """Procrastinate with its asynchronous connector."""

    async def prepare(self) -> None:
        """Apply the schema."""
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        """Open the pool."""
        await app.open_async()

    async def close(self) -> None:
        """Close the pool."""
        await app.close_async()

    async def enqueue(self, number: int) -> None:
        """Defer one."""
        await work.defer_async(number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Defer a batch for each queue."""
        for lane in range(min(LANES, len(numbers))):
            share = [{"number": number, "filler": FILLER} for number in numbers if number % LANES == lane]
            await work.configure(queue=lane_of(lane)).batch_defer_async(*share)

    def work(self) -> None:
        """Run a worker of every queue."""
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=CONCURRENCY)


if __name__ == "__main__":
    main(
        ProcrastinatePeer(),
        About(
            title="Procrastinate",
            package="procrastinate",
            tuning=f"`PsycopgConnector` with a pool (4 to 20), psycopg's C build, `concurrency={CONCURRENCY}`, LISTEN/NOTIFY on; "
            "it fetches one job at a time",
            history="default: the job stays in its table (`delete_jobs=never`), with a row per event",
            crash="at most once unless stalled jobs are retried by a periodic task of one's own; every commit is synced",
            left="select count(*) from (select 1 from procrastinate_jobs where status in ('todo', 'doing') limit 1) as waiting",
            ended="select count(*) from procrastinate_jobs where status = 'succeeded'",
            finished=(
                # Without its triggers, which would write an event of another kind for each row.
                "set session_replication_role = replica",
                """
                with doc as (
                    insert into procrastinate_jobs (queue_name, task_name, args, status, attempts)
                    select 'lane-0', 'work', '{{"number":7,"filler":"{filler}"}}', 'succeeded', 1 from generate_series(1, {rows})
                    returning id
                ) insert into procrastinate_events (job_id, type)
                select id, type::procrastinate_job_event_type
                from doc, unnest(array['deferred', 'started', 'succeeded']) as type""",
            ),
            has_lanes=True,
            versions=("psycopg",),
        ),
    )
