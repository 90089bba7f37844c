"""Short functions go to their thread many at a time; nobody may notice but by the speed."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from datetime import timedelta

from tests.worker.rig import Rig
from windlass.core.hooks import StartEvent
from windlass.core.job import JobState, RunReason
from windlass.worker.context import JobContext

MANY = 300


async def taught(rig: Rig, pools: str = "*=1") -> None:
    """Start a worker that has seen many short runs of `quick`, so that it hands them over together."""
    ids = [await rig.enqueue("quick") for _ in range(MANY)]
    await rig.start(pools=pools)
    for job_id in ids:
        assert (await rig.ended(job_id)).state is JobState.COMPLETED


async def test_every_function_of_a_long_queue_runs_once_with_its_own_arguments_and_result(rig: Rig) -> None:
    ran: list[int] = []

    def quick(number: int) -> int:
        ran.append(number)
        return number * 2

    rig.task(quick)
    ids = [await rig.enqueue("quick", {"number": number}) for number in range(MANY)]
    await rig.start(pools="*=3")
    for number, job_id in enumerate(ids):
        assert (await rig.ended(job_id)).state is JobState.COMPLETED
        [run] = await rig.executions(job_id)
        assert run.result_json == str(number * 2)
        assert run.finished_at is not None
        assert run.started_at <= run.finished_at
        assert run.cpu_time_ms is not None
    assert sorted(ran) == list(range(MANY))


async def test_what_a_handler_leaves_in_its_context_is_not_seen_by_the_next(rig: Rig) -> None:
    mark: ContextVar[str] = ContextVar("mark", default="clean")
    seen: list[str] = []

    def quick() -> None:
        seen.append(mark.get())
        mark.set("used")

    rig.task(quick)
    await taught(rig)
    assert seen == ["clean"] * MANY


async def test_one_that_fails_harms_none_of_its_neighbours(rig: Rig) -> None:
    def quick(number: int = 0) -> None:
        if number % 7 == 3:
            raise ValueError(f"number {number}")

    rig.task(quick)
    await taught(rig)
    ids = [await rig.enqueue("quick", {"number": number}, max_attempts=1) for number in range(100)]
    for number, job_id in enumerate(ids):
        job = await rig.ended(job_id)
        expected = (JobState.FAILED, f"ValueError: number {number}") if number % 7 == 3 else (JobState.COMPLETED, None)
        assert (job.state, job.last_error) == expected


async def test_one_that_hangs_delays_no_word_of_those_before_it_and_no_start_of_those_behind_it(rig: Rig) -> None:
    release = threading.Event()

    def quick(hangs: bool = False) -> None:  # noqa: FBT001, FBT002 - a payload's field
        if hangs:
            release.wait(15)

    rig.task(quick)
    await taught(rig, pools="*=2")
    jobs = [{"hangs": place == 20} for place in range(60)]
    ids = [await rig.enqueue("quick", payload) for payload in jobs]
    try:
        async with asyncio.timeout(5):
            for place, job_id in enumerate(ids):
                if place != 20:
                    assert (await rig.ended(job_id)).attempt == 1
        assert (await rig.store.get(ids[20])).state is JobState.RUNNING
    finally:
        release.set()
    assert (await rig.ended(ids[20])).state is JobState.COMPLETED


async def test_one_that_times_out_is_charged_alone(rig: Rig) -> None:
    def quick(seconds: float = 0.0) -> None:
        time.sleep(seconds)

    rig.task(quick, timeout=timedelta(seconds=0.5))
    await taught(rig)
    ids = [await rig.enqueue("quick", {"seconds": 3.0 if place == 10 else 0.0}, max_attempts=1) for place in range(40)]
    for place, job_id in enumerate(ids):
        job = await rig.ended(job_id)
        [run] = await rig.executions(job_id)
        expected = (JobState.FAILED, RunReason.TIMED_OUT) if place == 10 else (JobState.COMPLETED, None)
        assert (job.state, run.reason, job.attempt) == (*expected, 1)


async def test_one_that_is_cancelled_behind_a_hanging_neighbour_never_runs(rig: Rig) -> None:
    release = threading.Event()
    ran: list[int] = []

    def quick(number: int = -1) -> None:
        if number == 0:
            release.wait(15)
        ran.append(number)

    rig.task(quick)
    await taught(rig)
    ids = [await rig.enqueue("quick", {"number": number}) for number in range(5)]
    await rig.ended(ids[0], JobState.RUNNING)
    await rig.store.cancel([ids[3]])

    async def is_given_up() -> bool:
        return (await rig.store.get(ids[3])).worker is None

    await rig.until(is_given_up)
    release.set()
    for job_id in ids:
        await rig.ended(job_id)
    assert (await rig.store.get(ids[3])).state is JobState.CANCELLED
    assert sorted(number for number in ran if number >= 0) == [0, 1, 2, 4]


async def test_hooks_hear_of_every_start_on_the_event_loop(rig: Rig) -> None:
    heard: list[tuple[int, int]] = []

    def quick() -> None:
        return None

    def started(event: StartEvent) -> None:
        heard.append((event.job_id, threading.get_ident()))

    rig.hooks.add("start", started)
    rig.task(quick)
    await taught(rig)
    await rig.stop()
    assert len({job_id for job_id, _ in heard}) == len(heard) == MANY
    assert {thread for _, thread in heard} == {threading.get_ident()}


async def test_a_function_reaches_the_store_from_among_many(rig: Rig) -> None:
    def quick(ctx: JobContext) -> None:
        ctx.progress_sync(count=1, cursor=f"at {ctx.job_id}")

    rig.task(quick)
    ids = [await rig.enqueue("quick") for _ in range(50)]
    await rig.start(pools="*=2")
    for job_id in ids:
        job = await rig.ended(job_id)
        assert (job.progress_count, job.last_cursor) == (1, f"at {job_id}")
