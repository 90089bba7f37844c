# /// script
# requires-python = ">=3.11"
# dependencies = ["chancy", "psycopg[binary]"]
# ///
"""Chancy."""

from __future__ import annotations

import asyncio
import logging

from chancy import Chancy, Queue, Worker, job
from program import ADDRESS, FILLER, About, Peer, lane_of, lanes, main, note

CONCURRENCY = 500
OUTGOING_S = 0.1


@job()
async def work(*, number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


def described(number: int) -> object:
    """Describe a job; the worker finds its function by this module's name."""
    import chancy_program  # noqa: PLC0415 - run as a program, this module is called __main__

    return chancy_program.work.job.with_queue(lane_of(number)).with_kwargs(number=number, filler=FILLER)


def application() -> Chancy:
    """Make the application with its default plugins."""
    return Chancy(ADDRESS, log=logging.getLogger("chancy"))


class ChancyPeer(Peer):
    """Chancy with its asynchronous executor."""

    async def prepare(self) -> None:
        """Migrate."""
        async with application() as chancy:
            await chancy.migrate()

    async def open(self) -> None:
        """Open the pool."""
        self._chancy = await application().__aenter__()

    async def close(self) -> None:
        """Close the pool."""
        await self._chancy.__aexit__(None, None, None)

    async def enqueue(self, number: int) -> None:
        """Push one."""
        await self._chancy.push(described(number))

    async def enqueue_many(self, numbers: range) -> None:
        """Push many."""
        async for _ in self._chancy.push_many([described(number) for number in numbers]):
            pass

    def work(self) -> None:
        """Run a worker."""
        logging.basicConfig(level=logging.WARNING)
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with application() as chancy:
            for lane in lanes():
                await chancy.declare(
                    Queue(lane, concurrency=CONCURRENCY, executor=Chancy.Executor.Async, eager_polling=True, polling_interval=1),
                    upsert=True,
                )
            worker = Worker(chancy)
            worker.send_outgoing_interval = OUTGOING_S
            async with worker:
                await worker.wait_for_shutdown()


if __name__ == "__main__":
    main(
        ChancyPeer(),
        About(
            title="Chancy",
            package="chancy",
            tuning=f"asynchronous executor, `concurrency={CONCURRENCY}`, `eager_polling`, `polling_interval=1`, notifications "
            f"on, `send_outgoing_interval={OUTGOING_S}` (default 1 s), psycopg's C build, default plugins",
            history="default: finished jobs stay until its pruner removes them (60 s after they were made)",
            crash="its default of one attempt; ends that were not written yet are lost with the worker, up to "
            "`send_outgoing_interval`; every commit is synced",
            left="select count(*) from (select 1 from chancy_jobs where state in ('pending', 'running', 'retrying') limit 1)"
            " as waiting",
            finished=(
                """
                insert into chancy_jobs (id, queue, func, kwargs, state, attempts, created_at, started_at, completed_at)
                select gen_random_uuid(), 'lane-0', 'chancy_program.work', '{{"number":7,"filler":"{filler}"}}', 'succeeded', 1,
                    now(), now(), now()
                from generate_series(1, {rows})""",
            ),
            has_lanes=True,
            versions=("psycopg",),
        ),
    )
