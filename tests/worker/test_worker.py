"""What a worker does with jobs whose handlers are coroutines."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.rig import Rig
from windlass.core.job import Claimed, JobState, NewJob, RunReason, RunStatus, Slices, WaitReason
from windlass.core.payload import encode_object
from windlass.core.pool import FAST_LANE
from windlass.core.retry import RetryPolicy, RetrySpec
from windlass.core.signals import Cancel, Discard, Retry, Snooze
from windlass.core.topic import Topic
from windlass.errors import InvalidPayload
from windlass.worker import feeder
from windlass.worker.context import JobContext

QUICK = RetrySpec(base=timedelta(milliseconds=10), jitter=0.0)


async def test_a_job_runs_with_its_arguments_and_its_result_is_kept(rig: Rig) -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    rig.task(add)
    job_id = await rig.enqueue("add", {"a": 2, "b": 3})
    await rig.start()
    job = await rig.ended(job_id)
    [execution] = await rig.executions(job_id)
    assert (job.state, execution.status, execution.result_json, execution.number) == ("completed", RunStatus.COMPLETED, "5", 1)
    assert execution.worker == "worker-1"


async def test_a_failed_job_is_tried_again_and_ends_as_a_dead_letter(rig: Rig) -> None:
    async def fails() -> None:
        raise ValueError

    rig.task(fails)
    job_id = await rig.enqueue("fails", retry=QUICK, max_attempts=3)
    await rig.start()
    job = await rig.ended(job_id, JobState.FAILED)
    executions = await rig.executions(job_id)
    assert [(one.number, one.reason, one.error) for one in executions] == [(n, RunReason.ERROR, "ValueError") for n in (3, 2, 1)]
    assert "in fails" in (executions[0].stack_trace or "")
    assert "windlass/worker" not in (executions[0].stack_trace or "")
    assert job.attempt == 3
    assert len(await rig.store.list_dead_letters(job_id)) == 1


@pytest.mark.parametrize(
    ("signal", "state", "reason"),
    [
        (Discard("never"), JobState.FAILED, RunReason.ERROR),
        (Cancel("not wanted"), JobState.CANCELLED, RunReason.CANCELLED),
        (Snooze("1h"), JobState.SCHEDULED, RunReason.SNOOZED),
        (Retry("later", after="1h"), JobState.SCHEDULED, RunReason.ERROR),
        (KeyError("never retried"), JobState.FAILED, RunReason.ERROR),
        (OSError("by its own policy"), JobState.SCHEDULED, RunReason.ERROR),
        (SystemExit(3), JobState.FAILED, RunReason.ERROR),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
async def test_what_leaves_a_handler_decides_what_becomes_of_its_job(
    rig: Rig, signal: BaseException, state: JobState, reason: RunReason
) -> None:
    async def says() -> None:
        raise signal

    policy = RetryPolicy(base=timedelta(hours=1), cap=timedelta(hours=2))
    rig.task(says, never_retry=(KeyError, SystemExit), retry_by_error=((OSError, policy),))
    job_id = await rig.enqueue("says")
    await rig.start()
    await rig.until(lambda: _has_run(rig, job_id))
    job = await rig.store.get(job_id)
    [execution] = await rig.executions(job_id)
    assert (job.state, execution.reason) == (state, reason)
    assert job.attempt == (0 if isinstance(signal, Snooze) else 1)
    if state is JobState.SCHEDULED:
        assert execution.finished_at is not None
        assert timedelta(minutes=50) < job.run_at - execution.finished_at < timedelta(minutes=70)


async def _has_run(rig: Rig, job_id: int) -> bool:
    return bool(await rig.executions(job_id))


async def test_a_payload_that_does_not_fit_fails_for_good(rig: Rig) -> None:
    def refuse(_: str) -> dict[str, Any]:
        raise InvalidPayload("to", 5, "must be a text")

    async def email() -> None: ...

    spec = rig.task(email)
    object.__setattr__(spec, "arguments", refuse)
    job_id = await rig.enqueue("email", {"to": 5}, max_attempts=9)
    await rig.start()
    job = await rig.ended(job_id)
    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert "to: must be a text" in (job.last_error or "")


async def test_a_coroutine_past_its_timeout_is_cancelled_and_its_slot_goes_on(rig: Rig) -> None:
    cleaned: list[int] = []

    async def slow(n: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(n)

    rig.task(slow, timeout=timedelta(milliseconds=200))
    ids = [await rig.enqueue("slow", {"n": n}, max_attempts=1) for n in range(4)]
    await rig.start(pools="*=2")
    for job_id in ids:
        job = await rig.ended(job_id)
        [execution] = await rig.executions(job_id)
        assert (job.state, execution.reason) == (JobState.FAILED, RunReason.TIMED_OUT)
    assert sorted(cleaned) == [0, 1, 2, 3]


async def test_a_coroutine_that_will_not_stop_is_left_behind(rig: Rig) -> None:
    release = asyncio.Event()

    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async def next_one() -> None: ...

    rig.task(stubborn, timeout=timedelta(milliseconds=100))
    rig.task(next_one)
    stuck = await rig.enqueue("stubborn", max_attempts=1)
    await rig.start(pools="*=1")
    assert (await rig.ended(stuck)).state is JobState.FAILED
    assert (await rig.ended(await rig.enqueue("next_one"))).state is JobState.COMPLETED
    release.set()
    await asyncio.sleep(0.05)
    assert (await rig.store.get(stuck)).state is JobState.FAILED
    assert len(await rig.executions(stuck)) == 1


async def test_a_cancelled_job_is_stopped_and_says_so(rig: Rig) -> None:
    running = asyncio.Event()

    async def endless() -> None:
        logging.getLogger("app").warning("still here")
        running.set()
        await asyncio.sleep(60)

    rig.task(endless)
    job_id = await rig.enqueue("endless")
    worker = await rig.start()
    await running.wait()
    await rig.store.cancel([job_id])
    worker.wake(Topic.CONTROL)

    async def stopped() -> bool:
        return (await rig.store.get(job_id)).token is None

    await rig.until(stopped)
    [execution] = await rig.executions(job_id)
    assert (execution.status, execution.reason) == (RunStatus.CANCELLED, RunReason.CANCELLED)
    assert "still here" in (execution.log_excerpt or "")
    assert execution.stopped_at is not None


async def test_a_job_without_code_here_is_left_to_others(rig: Rig) -> None:
    async def known() -> None: ...

    rig.task(known)
    foreign = await rig.enqueue("foreign", priority=50)
    job_id = await rig.enqueue("known")
    await rig.start()
    await rig.ended(job_id)
    assert (await rig.store.get(foreign)).state is JobState.PENDING


async def test_fast_jobs_never_wait_behind_slow_ones(rig: Rig) -> None:
    gate = asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    async def quick() -> None: ...

    rig.task(slow)
    rig.task(quick)
    for _ in range(20):
        await rig.enqueue("slow", lane="slow", priority=100)
    await rig.start(pools="fast=1,*=3")
    await asyncio.sleep(0.1)
    ids = [await rig.enqueue("quick", lane=FAST_LANE) for _ in range(50)]
    started = time.monotonic()
    for job_id in ids:
        await rig.ended(job_id)
    assert time.monotonic() - started < 5
    gate.set()


async def test_jobs_held_ready_behind_a_long_one_go_back(rig: Rig) -> None:
    gate = asyncio.Event()

    async def quick() -> None: ...

    async def long_one() -> None:
        await gate.wait()

    rig.task(quick)
    rig.task(long_one)
    for _ in range(300):
        await rig.enqueue("quick")
    await rig.start(pools="*=1")
    await rig.enqueue("long_one", priority=10)

    async def given_back() -> bool:
        counts = {(one.task, one.state): one.jobs for one in await rig.store.count_jobs()}
        return counts.get(("quick", JobState.RUNNING), 0) == 0 and counts.get(("long_one", JobState.RUNNING), 0) == 1

    await rig.until(given_back)
    gate.set()


async def test_a_stopping_worker_finishes_what_runs_and_gives_back_the_rest(rig: Rig) -> None:
    running = asyncio.Event()

    async def slow() -> str:
        running.set()
        await asyncio.sleep(0.3)
        return "done"

    rig.task(slow)
    ids = [await rig.enqueue("slow") for _ in range(5)]
    await rig.start(pools="*=1")
    await running.wait()
    await rig.stop()
    states = [(await rig.store.get(job_id)).state for job_id in ids]
    assert states[0] is JobState.COMPLETED
    assert set(states[1:]) <= {JobState.PENDING, JobState.SCHEDULED}
    assert [(await rig.store.get(job_id)).attempt for job_id in ids] == [1, 0, 0, 0, 0]


async def test_a_worker_told_twice_ends_at_once_and_charges_nobody(rig: Rig) -> None:
    running = asyncio.Event()

    async def slow() -> None:
        running.set()
        await asyncio.sleep(60)

    rig.task(slow)
    job_id = await rig.enqueue("slow")
    worker = await rig.start(grace=timedelta(seconds=60))
    await running.wait()
    started = time.monotonic()
    worker.stop()
    await asyncio.sleep(0.05)
    worker.hurry()
    await rig.stop()
    job = await rig.store.get(job_id)
    assert (job.state, job.wait_reason, job.attempt) == (JobState.SCHEDULED, WaitReason.RELEASED, 0)
    assert time.monotonic() - started < 3


async def test_a_handler_that_blocks_the_loop_loses_no_lease(rig: Rig) -> None:
    async def blocks() -> None:
        time.sleep(3)  # noqa: ASYNC251 - the point of the test

    rig.task(blocks)
    job_id = await rig.enqueue("blocks", max_attempts=1)
    await rig.start(lease=timedelta(seconds=1))
    job = await rig.ended(job_id)
    assert (job.state, job.executions) == (JobState.COMPLETED, 1)


async def test_progress_and_cursor_are_kept_and_survive_a_retry(rig: Rig) -> None:
    seen: list[str | None] = []

    async def crawl(ctx: JobContext) -> None:
        seen.append(ctx.cursor)
        await ctx.progress(count=7, cursor="page-7", message="halfway")
        if ctx.attempt == 1:
            raise Retry(after=0)

    rig.task(crawl)
    job_id = await rig.enqueue("crawl")
    await rig.start()
    job = await rig.ended(job_id)
    assert seen == [None, "page-7"]
    assert (job.progress_count, job.last_cursor, job.progress_message) == (7, "page-7", "halfway")


async def test_a_woken_worker_claims_from_slices_it_remembers_before_it_looks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def quick() -> None: ...

    may_look = asyncio.Event()
    look = rig.store.slices

    async def late_look() -> Slices:
        await may_look.wait()
        return await look()

    rig.task(quick)
    worker = await rig.start(poll_interval=timedelta(seconds=30))
    first = await rig.enqueue("quick")
    worker.wake()
    await rig.ended(first)
    monkeypatch.setattr(rig.store, "slices", late_look)
    second = await rig.enqueue("quick")
    worker.wake()
    await rig.ended(second)
    may_look.set()


async def test_a_worker_with_a_backlog_does_not_look_at_every_wake_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = rig.store.slices

    async def counted() -> Slices:
        nonlocal looks
        looks += 1
        return await look()

    async def wake() -> None:
        worker.wake()

    rig.task(wake)
    await rig.store.enqueue([NewJob(task="wake")] * 600)
    last = await rig.enqueue("wake")
    monkeypatch.setattr(rig.store, "slices", counted)
    monkeypatch.setattr(feeder, "_LOOKS_APART_S", 1000.0)
    worker = await rig.start(pools="*=2", prefetch=1, poll_interval=timedelta(seconds=30))
    await rig.ended(last)
    # Some thirty claims at least; a look comes before the first, and once they bring less than was wanted.
    assert looks < 10


async def test_a_woken_worker_takes_nothing_from_a_remembered_lane_that_was_paused_since(rig: Rig) -> None:
    async def quick() -> None: ...

    rig.task(quick)
    worker = await rig.start(poll_interval=timedelta(seconds=30))
    for lane in ("default", "other"):
        job = await rig.enqueue("quick", lane=lane)
        worker.wake()
        await rig.ended(job)
    await rig.store.lanes.pause("default")
    held, free = await rig.enqueue("quick"), await rig.enqueue("quick", lane="other")
    worker.wake()
    await rig.ended(free)
    assert (await rig.store.get(held)).state is JobState.PENDING


async def test_large_payloads_are_claimed_a_few_at_a_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, sizes, ran = rig.store.claim, list[int](), list[int]()

    async def noted(*args: Any, **options: Any) -> list[Claimed]:
        taken = await claim(*args, **options)
        sizes.append(len(taken))
        return taken

    async def read(filler: str) -> None:
        ran.append(len(filler))

    monkeypatch.setattr(rig.store, "claim", noted)
    rig.task(read)
    await rig.store.enqueue([NewJob(task="read", payload=encode_object({"filler": "x" * 200_000}))] * 200)
    await rig.start(pools="*=60")

    async def is_over() -> bool:
        return len(ran) == 200

    await rig.until(is_over)
    first, *later = [size for size in sizes if size]
    assert first == 60
    # Four megabytes: a worker holds ready no more, however short the jobs are.
    assert max(later) <= 21
