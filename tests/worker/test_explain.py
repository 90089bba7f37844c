"""Explanations of jobs that a real worker with its upkeep runs, or does not."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.worker.rig import Rig
from windlass.core.breaker import BreakerSpec
from windlass.core.explanation import Situation
from windlass.core.job import JobState


async def test_a_full_pool_a_free_one_and_a_lane_that_nobody_serves(rig: Rig) -> None:
    go_on = asyncio.Event()

    async def crawl() -> None:
        await go_on.wait()

    rig.task(crawl)
    await rig.start(pools="crawls=1,fast=1")
    first = await rig.enqueue("crawl", lane="crawls")
    await rig.ended(first, JobState.RUNNING)
    found = await rig.store.explain(first)
    assert (found.verdict, "on worker worker-1" in found.sentence) == (Situation.RUNNING, True)
    second = await rig.enqueue("crawl", lane="crawls")
    found = await rig.store.explain(second)
    assert found.verdict is Situation.POOL_FULL
    assert "The one slot for lane crawls is busy: 1 of crawl" in found.sentence
    stranger = await rig.enqueue("crawl", lane="slow")
    assert (await rig.store.explain(stranger)).verdict is Situation.NO_WORKER_SERVES_LANE
    later = await rig.enqueue("crawl", lane="crawls", delay=timedelta(hours=1))
    found = await rig.store.explain(later)
    assert found.verdict is Situation.WAITING_FOR_ITS_TIME
    go_on.set()
    await rig.ended(second)
    found = await rig.store.explain(second)
    assert (found.verdict, "for a free slot" in found.sentence) == (Situation.COMPLETED, True)


async def test_a_service_that_fails_opens_its_breaker_and_what_died_is_explained(rig: Rig) -> None:
    async def mail() -> None:
        raise ConnectionError("no route to 10.0.0.5")

    rig.task(mail, breaker=BreakerSpec("smtp", 1, timedelta(minutes=10)), max_attempts=1)
    await rig.start()
    dead = await rig.enqueue("mail", max_attempts=1)
    await rig.ended(dead)

    async def is_open() -> bool:
        return await rig.store.breakers.get("smtp") is not None

    await rig.until(is_open)
    waiting = await rig.enqueue("mail", max_attempts=1)
    found = await rig.store.explain(waiting)
    assert (found.verdict, found.command) == (Situation.BREAKER_OPEN, "windlass breakers reset smtp")
    assert "after 1 failure in a row; it is tried with one job at" in found.sentence
    found = await rig.store.explain(dead)
    assert found.verdict is Situation.ATTEMPTS_USED_UP
    assert found.failure is not None
    assert (found.failure.error_type, found.failure.deaths) == ("ConnectionError", 1)
    assert "breaker smtp is not closed" in found.failure.because
