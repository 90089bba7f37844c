"""An error while the end of a run is handled strands no job and costs no slot."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.rig import Rig
from windlass.core.job import JobState
from windlass.core.outcome import Finish, decide
from windlass.worker.context import JobContext
from windlass.worker.slot import Slot
from windlass.worker.worker_log import WorkerLog

KINDS = ["async", "thread"]
LONG = timedelta(seconds=30)


def declare(rig: Rig, kind: str, **options: Any) -> Counter[int]:
    """Declare a task `work` of this kind; returns how often each job ran."""
    runs: Counter[int] = Counter()

    async def in_loop(ctx: JobContext) -> None:
        runs[ctx.job_id] += 1

    def in_thread(ctx: JobContext) -> None:
        runs[ctx.job_id] += 1

    rig.task(in_loop if kind == "async" else in_thread, name="work", **options)
    return runs


class FailingDecide:
    """Decides as ever, but for the first calls about a job."""

    def __init__(self, times: int) -> None:
        self.left = Counter[int]()
        self.times = times

    def about(self, job_id: int) -> None:
        self.left[job_id] = self.times

    def __call__(self, job: Any, *arguments: Any, **options: Any) -> Finish:
        if self.left[job.id]:
            self.left[job.id] -= 1
            raise RuntimeError("no decision")
        return decide(job, *arguments, **options)


@pytest.fixture
def filtered() -> Iterator[list[str]]:
    """Filter the log as an application whose filter raises for every line of the worker."""
    refused: list[str] = []

    def refuse(record: logging.LogRecord) -> bool:
        if record.name == "windlass.worker":
            refused.append(record.getMessage())
            raise AttributeError("tenant")
        return True

    handler = logging.NullHandler()
    handler.handle = refuse  # type: ignore[method-assign]  # as a handler whose filter raises
    log, root = logging.getLogger("windlass.worker"), logging.getLogger()
    before = log.level
    log.setLevel(logging.INFO)
    root.addHandler(handler)
    yield refused
    root.removeHandler(handler)
    log.setLevel(before)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_log_filter_that_raises_costs_no_slot_and_no_job(rig: Rig, kind: str, filtered: list[str]) -> None:
    declare(rig, kind)
    await rig.start(pools="*=2", lease=LONG)
    for _ in range(3):
        for job_id in [await rig.enqueue("work") for _ in range(2)]:
            job = await rig.ended(job_id)
            assert (job.state, job.executions) == (JobState.COMPLETED, 1)
    assert "job completed" in filtered


def test_a_line_of_the_worker_bears_the_name_of_the_code_that_wrote_it(caplog: pytest.LogCaptureFixture) -> None:
    log = WorkerLog(logging.getLogger("windlass.worker"))
    log.warning("a line", extra={"colour": "red"})
    log.log(logging.ERROR, "another")
    try:
        int("no")
    except ValueError:
        log.exception("a third")
    assert {record.funcName for record in caplog.records} == {
        "test_a_line_of_the_worker_bears_the_name_of_the_code_that_wrote_it"
    }
    assert vars(caplog.records[0])["colour"] == "red"
    assert caplog.records[2].exc_info is not None


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_whose_end_cannot_be_decided_fails_with_that_error(rig: Rig, kind: str) -> None:
    runs = declare(rig, kind)
    failing = FailingDecide(times=1)
    job_id = await rig.enqueue("work", max_attempts=1)
    failing.about(job_id)
    await rig.start(pools="*=1", lease=LONG, decide=failing)
    assert (await rig.ended(job_id)).state is JobState.FAILED
    [execution] = await rig.executions(job_id)
    assert execution.error is not None
    assert "RuntimeError" in execution.error
    other = await rig.enqueue("work")
    assert (await rig.ended(other)).state is JobState.COMPLETED
    assert runs == {job_id: 1, other: 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("times", "attempts"), [(2, 1), (3, 2)], ids=["given-back", "lease-runs-out"])
async def test_a_run_whose_end_can_be_reported_in_no_way_is_run_again(rig: Rig, kind: str, times: int, attempts: int) -> None:
    runs = declare(rig, kind)
    failing = FailingDecide(times)
    job_id = await rig.enqueue("work", max_attempts=2)
    failing.about(job_id)
    await rig.start(pools="*=1", lease=timedelta(seconds=1), decide=failing)
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, runs[job_id]) == (JobState.COMPLETED, attempts, 2)


async def test_an_end_that_cannot_be_decided_takes_no_neighbour_with_it(rig: Rig) -> None:
    runs = declare(rig, "thread")
    failing = FailingDecide(times=2)
    ids = [await rig.enqueue("work") for _ in range(200)]
    for job_id in ids[50::50]:
        failing.about(job_id)
    await rig.start(pools="*=2", lease=timedelta(seconds=1), decide=failing)
    for job_id in ids:
        assert (await rig.ended(job_id)).state is JobState.COMPLETED
    assert {job_id for job_id, times in runs.items() if times > 1} == set(ids[50::50])


async def test_a_slot_that_an_error_has_stopped_starts_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runs = declare(rig, "async")
    begin, failures = Slot._begin, 1

    def fail_once(*arguments: Any, **options: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise MemoryError
        return begin(*arguments, **options)

    monkeypatch.setattr(Slot, "_begin", fail_once)
    job_id = await rig.enqueue("work", max_attempts=1)
    await rig.start(pools="*=1", lease=timedelta(seconds=1))
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, runs) == (JobState.COMPLETED, 1, {job_id: 1})
    assert any("it starts again" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("is_exclusive", [False, True], ids=["plain", "exclusive"])
async def test_a_run_that_came_back_while_the_loop_was_blocked_is_not_given_back(
    rig: Rig, caplog: pytest.LogCaptureFixture, *, is_exclusive: bool
) -> None:
    runs: Counter[int] = Counter()

    def work(ctx: JobContext) -> None:
        time.sleep(4.5 if is_exclusive else 0.5)
        runs[ctx.job_id] += 1

    async def blocks() -> None:
        for _ in range(5):
            time.sleep(1.3)  # noqa: ASYNC251 - the point of the test
            await asyncio.sleep(0)

    rig.task(work, is_exclusive=is_exclusive)
    rig.task(blocks)
    ids = [await rig.enqueue("work", priority=1) for _ in range(3)]
    blocking = await rig.enqueue("blocks")
    await rig.start(pools="*=5", lease=timedelta(seconds=1))
    for job_id in [*ids, blocking]:
        job = await rig.ended(job_id)
        assert (job.state, job.executions) == (JobState.COMPLETED, 1)
    assert runs == dict.fromkeys(ids, 1)
    assert not any("held without a run" in record.getMessage() for record in caplog.records)
