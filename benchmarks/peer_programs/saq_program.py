# /// script
# requires-python = ">=3.11"
# dependencies = ["saq[postgres,redis,hiredis]", "psycopg[binary]", "orjson"]
# ///
"""SAQ on PostgreSQL and on Redis."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
from program import ADDRESS, FILLER, VARIANT, About, Peer, main, note
from redis.asyncio import Redis
from saq import Queue, Worker
from saq.queue.postgres import PostgresQueue
from saq.queue.redis import RedisQueue

CONCURRENCY = 100
IS_POSTGRES = VARIANT == "postgres"


def queue() -> Queue:
    """Make the queue."""
    coder = {"dump": orjson.dumps, "load": orjson.loads}
    if IS_POSTGRES:
        return PostgresQueue.from_url(ADDRESS, min_size=4, max_size=20, **coder)
    return RedisQueue(Redis.from_url(ADDRESS), **coder)


async def work(_: dict[str, Any], *, number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class SaqPeer(Peer):
    """SAQ."""

    async def prepare(self) -> None:
        """Connect once, which makes the tables."""
        await self.open()
        await self.close()

    async def open(self) -> None:
        """Connect."""
        self._queue = queue()
        await self._queue.connect()

    async def close(self) -> None:
        """Disconnect."""
        await self._queue.disconnect()

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        await self._queue.enqueue("work", number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue many at the same time: there is no bulk call."""
        await asyncio.gather(*(self.enqueue(number) for number in numbers))

    def work(self) -> None:
        """Run a worker."""
        logging.getLogger("saq").setLevel(logging.WARNING)
        asyncio.run(self._run())

    async def _run(self) -> None:
        own = queue()
        await own.connect()
        await Worker(own, functions=[work], concurrency=CONCURRENCY).start()


if __name__ == "__main__":
    main(
        SaqPeer(),
        About(
            title="SAQ, PostgreSQL" if IS_POSTGRES else "SAQ, Redis",
            package="saq",
            tuning=f"`concurrency={CONCURRENCY}`, orjson"
            + (", pool (4 to 20), psycopg's C build" if IS_POSTGRES else ", hiredis"),
            history="default: the finished job is kept for 10 minutes (`ttl=600`)",
            crash="its default of one attempt; a sweep finds jobs of lost workers",
            left="select count(*) from (select 1 from saq_jobs where status in ('new', 'queued', 'active') limit 1) as waiting"
            if IS_POSTGRES
            else "return redis.call('zcard', 'saq:default:incomplete') + redis.call('llen', 'saq:default:queued')"
            " + redis.call('llen', 'saq:default:active')",
            ended="select count(*) from saq_jobs where status = 'complete'" if IS_POSTGRES else "",
            finished=(
                """
                insert into saq_jobs (key, job, queue, status, expire_at)
                select 'past-' || n, convert_to('{{"function":"work","kwargs":{{"number":7,"filler":"{filler}"}}}}', 'UTF8'),
                    'default', 'complete', extract(epoch from now()) + 600
                from generate_series(1, {rows}) as n""",
            )
            if IS_POSTGRES
            else (),
            has_bulk=False,
            versions=("psycopg",) if IS_POSTGRES else ("redis",),
        ),
    )
