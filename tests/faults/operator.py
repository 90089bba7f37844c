"""A process that does what operators do, on jobs of its own and on everybody's lanes and schedules."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from random import Random

from tests.faults.jobs_app import app, ledger
from tests.faults.load import PAUSED_LANE
from windlass.core.filter import JobFilter
from windlass.core.letter_page import LetterQuery
from windlass.errors import StoreError, WindlassError

ANSWER_S = 20.0
_PAUSE_S = 0.25


class Operator:
    """Does one thing after another and writes down what was acknowledged."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = 0
        self._acts: tuple[Callable[[], Awaitable[None]], ...] = (
            self._cancel,
            self._run_now,
            self._edit,
            self._pause_lane,
            self._pause_task,
            self._hold_schedule,
            self._bulk,
            self._requeue,
        )

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._rng.choice(self._acts)()
            except StoreError as error:
                ledger.write("troubled", type(error).__name__)
            except WindlassError as error:
                ledger.write("refused", type(error).__name__)
            except TimeoutError:
                ledger.write("troubled", "TimeoutError")
            await asyncio.sleep(_PAUSE_S)

    async def _enqueue(self, seconds: float, delay: float) -> int:
        self._count += 1
        nonce = f"{os.getpid()}-op{self._count}"
        ledger.write("sent", "-", nonce)
        try:
            job = await app.enqueue("nap", {"seconds": seconds}, delay=delay, correlation_id=nonce)
        except BaseException:
            ledger.write("unknown", "error", nonce)
            raise
        ledger.write("acked", nonce, job.id, 0, "-")
        return job.id

    async def _cancel(self) -> None:
        job = await self._enqueue(5.0, self._rng.choice((0.0, 0.0, 2.0)))
        await asyncio.sleep(self._rng.uniform(0.0, 1.5))
        ledger.write("cancelling", job)
        await app.cancel(job)
        ledger.write("cancelled", job)

    async def _run_now(self) -> None:
        job = await self._enqueue(0.05, 60.0)
        ledger.write("forcing", job)
        await app.run_now(job)

    async def _edit(self) -> None:
        job = await self._enqueue(0.05, 1.0)
        await app.edit(job, payload={"seconds": 0.02})
        await app.boost(job, 10)

    async def _pause_lane(self) -> None:
        await app.lanes.pause(PAUSED_LANE)
        try:
            await asyncio.sleep(self._rng.uniform(0.1, 0.8))
        finally:
            await app.lanes.resume(PAUSED_LANE)

    async def _pause_task(self) -> None:
        await app.known_tasks.pause("flaky")
        try:
            await asyncio.sleep(self._rng.uniform(0.1, 0.8))
        finally:
            await app.known_tasks.resume("flaky")

    async def _hold_schedule(self) -> None:
        schedule = await app.schedules.get("tock")
        await app.disable(schedule.id)
        try:
            await asyncio.sleep(self._rng.uniform(0.1, 0.5))
        finally:
            await app.enable(schedule.id)

    async def _bulk(self) -> None:
        jobs = [await self._enqueue(0.02, 3.0) for _ in range(5)]
        for job in jobs:
            ledger.write("forcing", job)
        await app.bulk(self._rng.choice(("boost", "run_now")), JobFilter(), {}, ids=jobs)

    async def _requeue(self) -> None:
        """Give a job that ended for good another chance; it ends in the same way."""
        for letter in (await app.letters.list(LetterQuery(limit=3))).letters:
            if letter.task == "doomed":
                ledger.write("requeued", letter.job_id)
                await app.letters.requeue([letter.id])
                return


async def main() -> None:
    ledger.open()
    async with app:
        await Operator(Random(sys.argv[1])).run()


if __name__ == "__main__":
    asyncio.run(main())
