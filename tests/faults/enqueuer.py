"""A process that enqueues in every way there is and writes down which enqueues were acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from random import Random
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.faults.jobs_app import app, ledger
from tests.faults.load import Call, draw
from windlass import Enqueued
from windlass.core.job import JobState, NewJob
from windlass.errors import WindlassError
from windlass.remote import AsyncClient
from windlass.store.sqlite_library import sqlite_driver as driver

ANSWER_S = 20.0
MOST_WAITING = 400
_MOST_HUNG = 4


class Enqueuer:
    """Enqueues at a steady rate, unless too much is waiting."""

    def __init__(self, rng: Random, jobs_per_second: float, way: str) -> None:
        self._rng = rng
        self._rate = jobs_per_second
        self._way = way
        self._count = 0
        self._hung: set[asyncio.Future[Any]] = set()

    async def run(self) -> None:
        async with AsyncClient(timeout=ANSWER_S, retries=0) as client, asyncio.TaskGroup() as group:
            while True:
                call = draw(self._rng)
                if self._way == "http":
                    # An answer for each: of half a batch nobody would know.
                    call = call._replace(copies=1)
                pause = asyncio.sleep(call.copies / self._rate)
                group.create_task(self._enqueue(call, client))
                await pause
                await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        """Keep the queue short: how long jobs wait shall show recovery and not the load."""
        while self._count % 10 == 0 and not await self._has_room():  # noqa: ASYNC110 - the database is asked
            await asyncio.sleep(0.2)

    async def _has_room(self) -> bool:
        try:
            async with asyncio.timeout(ANSWER_S):
                counts = await app.counts()
        except (WindlassError, TimeoutError):
            return False
        return sum(count.jobs for count in counts if count.state is JobState.PENDING) < MOST_WAITING

    async def _enqueue(self, call: Call, client: AsyncClient) -> None:
        self._count += 1
        nonces = [f"{os.getpid()}-{self._count}-{number}" for number in range(call.copies)]
        conflict = call.options.get("on_conflict", "-")
        ledger.write("sent", conflict, *nonces)
        try:
            async with asyncio.timeout(ANSWER_S):
                ids = await self._send(call, nonces, client)
        except (WindlassError, TimeoutError, OSError, psycopg.Error, driver.Error) as error:
            ledger.write("unknown", type(error).__name__, *nonces)
            return
        if ids is None:
            ledger.write("rolled_back", *nonces)
            return
        for nonce, (job_id, is_duplicate) in zip(nonces, ids, strict=True):
            ledger.write("acked", nonce, job_id, int(is_duplicate), conflict)

    async def _send(self, call: Call, nonces: list[str], client: AsyncClient) -> list[tuple[int, bool]] | None:
        if self._way == "http":
            job = await client.enqueue(call.task, call.arguments, correlation_id=nonces[0], **call.options)
            return [(job.number, job.duplicate)]
        jobs = [app.describe(call.task, call.arguments, {**call.options, "correlation_id": nonce})[0] for nonce in nonces]
        if self._way == "transaction" and len(self._hung) < _MOST_HUNG:
            working = asyncio.get_running_loop().run_in_executor(None, self._in_transaction, jobs, self._rng.random() < 0.3)
            self._hung.add(working)
            working.add_done_callback(self._hung.discard)
            return await asyncio.shield(working)
        return _answers(await app.enqueue_jobs(jobs))

    def _in_transaction(self, jobs: list[NewJob], rolls_back: bool) -> list[tuple[int, bool]] | None:  # noqa: FBT001 - executors take no keywords
        """Enqueue in a transaction of our own, which may come to nothing."""
        url = app.settings.database_url
        connection = (
            driver.connect(urlsplit(url).path.removeprefix("/"), timeout=ANSWER_S)
            if url.startswith("sqlite")
            else psycopg.connect(url, connect_timeout=10)
        )
        try:
            made = app.enqueue_jobs_sync(jobs, connection)
            if rolls_back:
                connection.rollback()
                return None
            connection.commit()
            return _answers(made)
        finally:
            connection.close()


def _answers(made: Any) -> list[tuple[int, bool]]:
    return [(each.id, each.is_duplicate) for each in made if isinstance(each, Enqueued)]


async def main() -> None:
    seed, rate, way = sys.argv[1:]
    ledger.open()
    async with app:
        await Enqueuer(Random(seed), float(rate), way).run()


if __name__ == "__main__":
    asyncio.run(main())
