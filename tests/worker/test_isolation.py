"""Handlers in threads and processes of their own, whatever they do."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.worker import process_app
from tests.worker.rig import Rig
from windlass.core.job import JobState, RunReason
from windlass.core.topic import Topic
from windlass.worker.context import JobContext

TARGET = "tests.worker.process_app:app"


async def test_a_function_runs_in_a_thread_and_its_cpu_time_is_kept(rig: Rig) -> None:
    def work(n: int) -> str:
        deadline = time.thread_time() + 0.05
        while time.thread_time() < deadline:
            pass
        return f"{n} in {threading.current_thread().name}"

    rig.task(work)
    job_id = await rig.enqueue("work", {"n": 5})
    await rig.start()
    await rig.ended(job_id)
    [execution] = await rig.executions(job_id)
    assert "5 in windlass-slot" in (execution.result_json or "")
    assert (execution.cpu_time_ms or 0) >= 50


async def test_twenty_hung_functions_time_out_and_their_slots_go_on(rig: Rig) -> None:
    release = threading.Event()

    def hung() -> None:
        release.wait(60)

    def fine() -> None: ...

    rig.task(hung, timeout=timedelta(milliseconds=500))
    rig.task(fine)
    ids = [await rig.enqueue("hung", max_attempts=1) for _ in range(20)]
    await rig.start(pools="*=4", most_lost_threads=100)
    for job_id in ids:
        job = await rig.ended(job_id)
        [execution] = await rig.executions(job_id)
        assert (job.state, execution.reason) == (JobState.FAILED, RunReason.TIMED_OUT)
        assert execution.duration_ms is not None
        assert execution.duration_ms < 2000
    after = [await rig.enqueue("fine") for _ in range(8)]
    assert {(await rig.ended(job_id)).state for job_id in after} == {JobState.COMPLETED}
    release.set()


async def test_a_worker_with_many_lost_threads_ends_in_order(rig: Rig) -> None:
    release = threading.Event()

    def hung() -> None:
        release.wait(60)

    rig.task(hung, timeout=timedelta(milliseconds=100))
    for _ in range(6):
        await rig.enqueue("hung", max_attempts=1)
    worker = await rig.start(pools="*=3", most_lost_threads=2, stop_grace=timedelta(milliseconds=100))

    async def worn() -> bool:
        return worker.is_worn

    await rig.until(worn)
    [(_, task, _)] = rig.workers
    await asyncio.wait_for(task, 10)
    release.set()


async def test_a_cancelled_function_sees_it_and_stops(rig: Rig) -> None:
    seen = threading.Event()

    def patient(ctx: JobContext) -> None:
        ctx.progress_sync(cursor="begun")
        while not ctx.cancelled:
            time.sleep(0.005)
        seen.set()

    rig.task(patient)
    job_id = await rig.enqueue("patient")
    worker = await rig.start()

    async def begun() -> bool:
        return (await rig.store.get(job_id)).last_cursor == "begun"

    await rig.until(begun)
    await rig.store.cancel([job_id])
    worker.wake(Topic.CONTROL)

    async def stopped() -> bool:
        return (await rig.store.get(job_id)).token is None

    await rig.until(stopped)
    assert seen.is_set()


async def test_a_function_may_not_wait_for_the_loop_it_runs_on(rig: Rig) -> None:
    async def wrong(ctx: JobContext) -> None:
        ctx.progress_sync(count=1)

    rig.task(wrong)
    job_id = await rig.enqueue("wrong", max_attempts=1)
    await rig.start()
    assert "await ctx.progress" in ((await rig.ended(job_id)).last_error or "")


@pytest.fixture
def processes(rig: Rig) -> Rig:
    rig.registry = process_app.app.registry
    return rig


async def test_a_process_runs_jobs_and_measures_them(processes: Rig) -> None:
    ids = [await processes.enqueue("add", {"a": n, "b": 1}) for n in range(5)]
    crawled = await processes.enqueue("crawl")
    await processes.start(target=TARGET, pools="*=1", lease=timedelta(seconds=20))
    for n, job_id in enumerate(ids):
        await processes.ended(job_id)
        [execution] = await processes.executions(job_id)
        assert execution.result_json == str(n + 1)
        assert execution.cpu_time_ms is not None
        assert (execution.memory_peak_mb or 0) > 5
    job = await processes.ended(crawled)
    [execution] = await processes.executions(crawled)
    assert execution.result_json == '"2 new, 1 known"'
    assert (job.last_cursor, job.result_count) == ("page-3", 2)


@pytest.mark.parametrize(("name", "words"), [("segfault", "SIGSEGV"), ("leave", "9"), ("allocate", "memory")])
async def test_a_handler_that_takes_its_process_with_it_harms_nobody_else(processes: Rig, name: str, words: str) -> None:
    doomed = await processes.enqueue(name, max_attempts=1)
    neighbours = [await processes.enqueue("add", {"a": 1, "b": n}) for n in range(5)]
    await processes.start(target=TARGET, pools="*=2", lease=timedelta(seconds=20))
    job = await processes.ended(doomed)
    [execution] = await processes.executions(doomed)
    assert (job.state, execution.reason) == (JobState.FAILED, RunReason.WORKER_CRASHED)
    assert words in (execution.error or "")
    assert len(await processes.store.list_dead_letters(doomed)) == 1
    assert {(await processes.ended(job_id)).state for job_id in neighbours} == {JobState.COMPLETED}


async def test_a_process_past_its_timeout_is_killed_with_its_children(processes: Rig, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    job_id = await processes.enqueue("fork_and_hang", {"path": str(note)}, max_attempts=1, timeout=timedelta(seconds=3))
    await processes.start(target=TARGET, pools="*=1", lease=timedelta(seconds=20))
    job = await processes.ended(job_id)
    [execution] = await processes.executions(job_id)
    assert (job.state, execution.reason) == (JobState.FAILED, RunReason.TIMED_OUT)

    async def gone() -> bool:
        return not any(_is_alive(int(pid)) for pid in note.read_text().split())

    await processes.until(gone)


@pytest.mark.parametrize("is_hurried", [False, True], ids=["stop", "hurry"])
async def test_a_process_that_does_not_stop_in_time_is_killed_and_its_job_given_back(
    processes: Rig, tmp_path: Path, *, is_hurried: bool
) -> None:
    note = tmp_path / "pids"
    job_id = await processes.enqueue("fork_and_hang", {"path": str(note)}, max_attempts=1)
    grace = timedelta(milliseconds=100)
    worker = await processes.start(target=TARGET, pools="*=1", lease=timedelta(seconds=20), grace=grace, stop_grace=grace)

    async def begun() -> bool:
        return note.exists() and note.read_text().count(" ") == 1

    await processes.until(begun)
    if is_hurried:
        worker.hurry()
    else:
        worker.stop()
    [(_, running, _)] = processes.workers
    async with asyncio.timeout(4):
        await running
    job = await processes.store.get(job_id)
    [execution] = await processes.executions(job_id)
    assert (job.attempt, job.crashes, execution.reason) == (0, 0, RunReason.RELEASED)
    assert job.state in {JobState.SCHEDULED, JobState.PENDING}
    assert not any(_is_alive(int(pid)) for pid in note.read_text().split())


@pytest.mark.parametrize("is_hurried", [False, True], ids=["stop", "hurry"])
async def test_an_exclusive_function_that_does_not_stop_keeps_its_lease_until_its_process_ends(
    rig: Rig, *, is_hurried: bool
) -> None:
    begun, release = threading.Event(), threading.Event()

    def stubborn() -> None:
        begun.set()
        release.wait(30)

    rig.task(stubborn, is_exclusive=True)
    job_id = await rig.enqueue("stubborn")
    grace = timedelta(milliseconds=100)
    worker = await rig.start(lease=timedelta(seconds=20), grace=grace, stop_grace=grace)

    async def has_begun() -> bool:
        return begun.is_set()

    await rig.until(has_begun)
    if is_hurried:
        worker.hurry()
    try:
        await rig.stop()
        job = await rig.store.get(job_id)
        assert (job.state, job.worker, await rig.executions(job_id)) == (JobState.RUNNING, "worker-1", [])
        assert worker.holds_runs
    finally:
        release.set()


async def test_an_exclusive_function_past_its_timeout_keeps_its_lease_until_it_ends(rig: Rig) -> None:
    begun, release = threading.Event(), threading.Event()

    def stubborn() -> None:
        begun.set()
        release.wait(30)

    rig.task(stubborn, is_exclusive=True, timeout=timedelta(milliseconds=200))
    job_id = await rig.enqueue("stubborn", max_attempts=1)
    await rig.start(lease=timedelta(seconds=2), stop_grace=timedelta(milliseconds=100))

    async def has_begun() -> bool:
        return begun.is_set()

    await rig.until(has_begun)
    await asyncio.sleep(1)
    try:
        assert (await rig.store.get(job_id)).state is JobState.RUNNING
    finally:
        release.set()
    job = await rig.ended(job_id)
    [execution] = await rig.executions(job_id)
    assert (job.state, execution.reason) == (JobState.FAILED, RunReason.TIMED_OUT)


async def test_the_job_of_a_process_that_survives_its_kill_is_given_back_as_well(
    processes: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pids"
    job_id = await processes.enqueue("fork_and_hang", {"path": str(note)}, max_attempts=1)
    grace = timedelta(milliseconds=100)
    worker = await processes.start(target=TARGET, pools="*=1", lease=timedelta(seconds=20), grace=grace, stop_grace=grace)

    async def begun() -> bool:
        return note.exists() and note.read_text().count(" ") == 1

    await processes.until(begun)
    # As for a process that is stuck in the kernel.
    monkeypatch.setattr("windlass.worker.child_process.kill_descendants", lambda _child, _mark: 0)
    worker.stop()
    [(_, running, _)] = processes.workers
    async with asyncio.timeout(4):
        await running
    job = await processes.store.get(job_id)
    [execution] = await processes.executions(job_id)
    assert (job.attempt, job.crashes, execution.reason) == (0, 0, RunReason.RELEASED)
    for pid in map(int, note.read_text().split()):
        os.kill(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" if Path("/proc").exists() else True


async def test_a_process_needs_to_know_where_the_application_is(processes: Rig) -> None:
    job_id = await processes.enqueue("add", {"a": 1, "b": 2}, max_attempts=1)
    await processes.start()
    assert "windlass worker module:app" in ((await processes.ended(job_id)).last_error or "")


async def test_a_child_process_ends_the_tasks_that_a_handler_leaves_behind(processes: Rig, tmp_path: Path) -> None:
    left = tmp_path / "left"
    job_id = await processes.enqueue("leave_a_task", {"path": str(left)})
    await processes.start(pools="*=1", target=TARGET)
    assert (await processes.ended(job_id)).state is JobState.COMPLETED

    async def is_cancelled() -> bool:
        return left.exists() and left.read_text() == "cancelled"

    await processes.until(is_cancelled)
