# /// script
# requires-python = ">=3.11"
# dependencies = ["arq", "hiredis"]
# ///
"""Arq on Redis."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker
from program import ADDRESS, FILLER, About, Peer, main, note

MAX_JOBS = 100
POLL_S = 0.01
SETTINGS = RedisSettings(unix_socket_path=ADDRESS.removeprefix("unix://"))


async def work(_: dict[str, Any], number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class ArqPeer(Peer):
    """Arq."""

    async def open(self) -> None:
        """Connect."""
        self._pool = await create_pool(SETTINGS)

    async def close(self) -> None:
        """Disconnect."""
        await self._pool.aclose()

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        await self._pool.enqueue_job("work", number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue many at the same time: there is no bulk call."""
        for start in range(0, len(numbers), 50):
            await asyncio.gather(*(self.enqueue(number) for number in numbers[start : start + 50]))

    def work(self) -> None:
        """Run a worker."""
        logging.getLogger("arq").setLevel(logging.WARNING)
        asyncio.set_event_loop(asyncio.new_event_loop())
        Worker([work], redis_settings=SETTINGS, max_jobs=MAX_JOBS, poll_delay=POLL_S).run()


if __name__ == "__main__":
    main(
        ArqPeer(),
        About(
            title="arq",
            package="arq",
            tuning=f"`max_jobs={MAX_JOBS}`, `poll_delay={POLL_S}` (default 0.5 s), hiredis; no bulk call: 50 at the same time",
            history="default: results are kept for an hour",
            crash="at least once: a job of a lost worker runs again after its timeout",
            left="return redis.call('zcard', 'arq:queue')",
            has_bulk=False,
            versions=("redis",),
        ),
    )
