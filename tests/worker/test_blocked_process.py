"""A process whose event loop is blocked beyond a timeout ends, whatever the other runs were about to do."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.rig import Rig
from windlass.core.blocking import run
from windlass.core.breaker import BreakerSpec
from windlass.core.job import Claimed, JobState
from windlass.core.outcome import Finish, Outcome, Raised, decide
from windlass.worker.replacement import Replacement
from windlass.worker.worker import Worker

SERVICE = BreakerSpec("service", threshold=5)
BLOCKED_S = 3.0
# The process lives on here, and would block again.
ONCE: dict[str, Any] = {"max_attempts": 1, "priority": -1}


class EndOfProcess:
    """Notes the states of jobs at the moment when the process would end."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.watched: list[int] = []
        self.states: list[list[JobState]] = []

    def __call__(self) -> None:
        self.states.append([run(self._rig.blocking_store.get(job_id)).state for job_id in self.watched])


async def start(rig: Rig, end: EndOfProcess, **options: Any) -> Worker:
    grace = timedelta(milliseconds=100)
    return await rig.start(pools="*=3", grace=grace, replacement=Replacement(rig.blocking_store, end), **options)


def stuck(rig: Rig, before: Callable[[], Any] | None = None) -> None:
    async def stuck() -> None:
        if before is not None:
            await before()
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - the point of the test

    rig.task(stuck, timeout=timedelta(seconds=1))


async def test_a_coroutine_that_blocks_before_its_first_await_ends_the_process(rig: Rig) -> None:
    stuck(rig)
    end = EndOfProcess(rig)
    job_id = await rig.enqueue("stuck", **ONCE)
    end.watched.append(job_id)
    await start(rig, end)
    await rig.ended(job_id)
    assert end.states == [[JobState.FAILED]]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in Python 3.12")
async def test_an_eager_task_of_a_handler_that_blocks_ends_the_process(rig: Rig) -> None:
    async def block() -> None:
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - the point of the test

    async def eager() -> None:
        await asyncio.Task(block(), loop=asyncio.get_running_loop(), eager_start=True)  # type: ignore[call-arg]

    rig.task(eager, timeout=timedelta(seconds=1))
    end = EndOfProcess(rig)
    job_id = await rig.enqueue("eager", **ONCE)
    end.watched.append(job_id)
    await start(rig, end)
    await rig.ended(job_id)
    assert end.states == [[JobState.FAILED]]


async def test_a_guarded_run_that_came_back_from_its_thread_is_recorded(rig: Rig) -> None:
    def guarded() -> None:
        time.sleep(0.3)

    rig.task(guarded, breaker=SERVICE)
    stuck(rig)
    end = EndOfProcess(rig)
    end.watched = [await rig.enqueue("guarded"), await rig.enqueue("stuck", **ONCE)]
    await start(rig, end)
    await rig.ended(end.watched[1])
    assert end.states == [[JobState.COMPLETED, JobState.FAILED]]
    assert (await rig.store.get(end.watched[0])).executions == 1


async def test_a_run_whose_breaker_is_being_told_is_recorded(rig: Rig) -> None:
    workers: list[Worker] = []

    async def guarded() -> None: ...

    async def until_the_breaker_is_told() -> None:
        async with asyncio.timeout(5):
            while not workers[0]._held_jobs._recordings:  # noqa: ASYNC110 - nothing else tells of it
                await asyncio.sleep(0)

    rig.task(guarded, breaker=SERVICE)
    stuck(rig, until_the_breaker_is_told)
    end = EndOfProcess(rig)
    end.watched = [await rig.enqueue("guarded"), await rig.enqueue("stuck", **ONCE)]
    workers.append(await start(rig, end))
    await rig.ended(end.watched[1])
    assert end.states == [[JobState.COMPLETED, JobState.FAILED]]
    assert (await rig.store.get(end.watched[0])).executions == 1


async def test_the_process_ends_even_if_the_last_ends_cannot_be_decided(rig: Rig) -> None:
    async def patient() -> None:
        await asyncio.sleep(0.2)

    def fail_once(job: Claimed, outcome: Outcome, *arguments: Any, **options: Any) -> Finish:
        if isinstance(outcome, Raised) and not end.states:
            raise RuntimeError("no decision")
        return decide(job, outcome, *arguments, **options)

    rig.task(patient)
    stuck(rig)
    end = EndOfProcess(rig)
    end.watched = [await rig.enqueue("patient"), await rig.enqueue("stuck", **ONCE)]
    await start(rig, end, decide=fail_once)
    await rig.ended(end.watched[0])
    await rig.ended(end.watched[1])
    assert end.states == [[JobState.SCHEDULED, JobState.RUNNING]]
