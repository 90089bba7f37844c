"""What one run does to its task, its context or its leftovers reaches no other."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.worker.rig import Rig
from windlass import Windlass
from windlass.core.job import JobState
from windlass.core.topic import Topic
from windlass.worker.context import JobContext
from windlass.worker.logs import LoggedRun
from windlass.worker.run import ActiveRun

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


async def test_a_stray_cancel_of_a_run_that_is_over_hits_no_other(rig: Rig) -> None:
    async def stray() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.02, task.cancel)

    async def patient() -> str:
        await asyncio.sleep(0.2)
        return "done"

    rig.task(stray)
    rig.task(patient)
    await rig.start(pools="*=1")
    for _ in range(3):
        await rig.enqueue("stray")
        job = await rig.ended(await rig.enqueue("patient"))
        assert (job.state, job.attempt) == (JobState.COMPLETED, 1)


async def test_a_timeout_that_was_left_open_cuts_off_no_later_run(rig: Rig) -> None:
    kept: list[Any] = []

    async def careless() -> None:
        timeout = asyncio.timeout(0.03)
        await timeout.__aenter__()
        kept.append(timeout)

    async def patient() -> None:
        await asyncio.sleep(0.15)

    rig.task(careless)
    rig.task(patient)
    await rig.start(pools="*=1")
    assert (await rig.ended(await rig.enqueue("careless"))).state is JobState.COMPLETED
    assert (await rig.ended(await rig.enqueue("patient"))).attempt == 1


@pytest.mark.parametrize("kind", [GeneratorExit, SystemExit, KeyboardInterrupt, BaseException])
async def test_whatever_a_handler_raises_ends_its_job_and_leaves_its_slot(rig: Rig, kind: type[BaseException]) -> None:
    async def odd() -> None:
        raise kind("odd")

    def odd_function() -> None:
        raise kind("odd")

    async def fine() -> None: ...

    for function in (odd, odd_function, fine):
        rig.task(function)
    await rig.start(pools="*=1")
    for name in ("odd", "odd_function"):
        job = await rig.ended(await rig.enqueue(name, max_attempts=1))
        assert (job.state, "odd" in (job.last_error or "")) == (JobState.FAILED, True)
    assert (await rig.ended(await rig.enqueue("fine"))).state is JobState.COMPLETED


async def test_a_context_variable_of_one_job_is_seen_by_no_other(rig: Rig) -> None:
    seen: list[str] = []

    async def coroutine(name: str) -> None:
        seen.append(TENANT.get())
        TENANT.set(name)
        await asyncio.sleep(0)
        assert TENANT.get() == name

    def function(name: str) -> None:
        seen.append(TENANT.get())
        TENANT.set(name)

    rig.task(coroutine)
    rig.task(function)
    await rig.start(pools="*=1")
    for place in range(10):
        await rig.ended(await rig.enqueue("coroutine" if place % 2 else "function", {"name": f"tenant {place}"}))
    assert seen == ["nobody"] * 10


async def test_what_the_worker_was_started_with_is_seen_by_every_run(rig: Rig) -> None:
    seen: list[str] = []

    async def coroutine() -> None:
        seen.append(TENANT.get())

    def function() -> None:
        seen.append(TENANT.get())

    rig.task(coroutine)
    rig.task(function)
    TENANT.set("the fleet")
    await rig.start()
    for name in ("coroutine", "function"):
        await rig.ended(await rig.enqueue(name))
    assert seen == ["the fleet"] * 2


async def test_tasks_that_a_handler_leaves_behind_are_cancelled_and_logged(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    ends: list[str] = []

    async def background(name: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ends.append(name)
            raise

    kept: list[asyncio.Task[None]] = []

    async def leaves() -> None:
        kept.append(asyncio.create_task(background("left"), name="polling the bank"))
        with windlass.detached():
            kept.append(asyncio.create_task(background("shared")))
        await asyncio.sleep(0.01)

    rig.task(leaves)
    await rig.start()
    job = await rig.ended(await rig.enqueue("leaves"))
    assert job.state is JobState.COMPLETED

    async def is_cancelled() -> bool:
        return kept[0].done()

    await rig.until(is_cancelled)
    assert ends == ["left"]
    assert any("polling the bank" in record.getMessage() for record in caplog.records)
    kept[1].cancel()


async def test_tasks_that_have_ended_are_not_kept(rig: Rig) -> None:
    alive: list[int] = []

    async def many() -> None:
        for _ in range(100):
            await asyncio.create_task(asyncio.sleep(0))
        gc.collect()
        # By its type: to ask a proxy of something gone for its class is an error.
        alive.append(sum(len(found.tasks or ()) for found in gc.get_objects() if type(found) is LoggedRun))

    rig.task(many)
    await rig.start()
    await rig.ended(await rig.enqueue("many"))
    assert alive[0] <= 1


async def test_what_is_shared_with_later_jobs_outlives_the_run_that_opens_it(url: str) -> None:
    app = Windlass(url)
    app.migrate()

    @app.task
    async def child() -> None: ...

    @app.task
    async def parent() -> None:
        await asyncio.gather(*(child.enqueue() for _ in range(5)))

    async with app, app.working():
        for _ in range(3):
            made = await parent.enqueue()
            await app.wait(made.id, timeout=10)
        async with asyncio.timeout(10):
            while [count for count in await app.counts() if count.state is not JobState.COMPLETED]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


class Unreadable:
    """A result whose own methods are broken."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no result")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


async def test_an_end_that_cannot_be_handled_ends_the_job_with_that_error(rig: Rig) -> None:
    async def strange_metadata(ctx: JobContext) -> None:
        ctx.metadata = {"odd": Unreadable()}

    async def strange_result() -> Any:
        return Unreadable()

    async def strange_error() -> None:
        raise UnreadableError

    def strange_error_in_thread() -> None:
        raise UnreadableError

    for function in (strange_metadata, strange_result, strange_error, strange_error_in_thread):
        rig.task(function)
    await rig.start(pools="*=2", lease=timedelta(seconds=30))
    ids = [await rig.enqueue(name, max_attempts=1) for name in sorted(rig.registry.names)]
    for job_id in ids:
        job = await rig.ended(job_id)
        assert job.state in {JobState.COMPLETED, JobState.FAILED}
        assert job.attempt == 1


async def test_a_job_that_is_held_without_a_run_is_given_back(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []

    async def fine(ctx: JobContext) -> None:
        ran.append(ctx.job_id)

    rig.task(fine)
    worker = await rig.start(lease=timedelta(seconds=1))
    [pool, _] = worker._fed
    start, forgotten = pool._start, 0

    def forget_once(slot: Any, job: Any) -> bool:
        nonlocal forgotten
        if forgotten:
            return start(slot, job)
        # As a defect would: the job is taken out and neither started nor given back.
        forgotten = job.id
        return False

    pool._start = forget_once  # type: ignore[method-assign]
    job_id = await rig.enqueue("fine", lane="fast")
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, ran, forgotten) == (JobState.COMPLETED, 1, [job_id], job_id)
    assert any("held without a run" in record.getMessage() for record in caplog.records)


async def test_cancelled_runs_are_not_kept_for_hooks(rig: Rig) -> None:
    rig.hooks.add("finish", lambda _event: None)
    begun = asyncio.Event()

    async def patient() -> None:
        begun.set()
        await asyncio.sleep(60)

    rig.task(patient, name="kept_by_hooks")
    worker = await rig.start()
    job_id = await rig.enqueue("kept_by_hooks")
    await begun.wait()
    await rig.store.cancel([job_id])
    worker.wake(Topic.CONTROL)

    async def is_stopped() -> bool:
        return (await rig.store.get(job_id)).token is None

    await rig.until(is_stopped)
    gc.collect()
    # By their type: a proxy that another package has made is asked for what it stands for by `isinstance`, and may raise.
    kept = [found for found in gc.get_objects() if type(found) is ActiveRun]
    # Only those of this test: what others have abandoned in threads may still be held there.
    assert [run for run in kept if run.job.task == "kept_by_hooks"] == []


async def test_a_factory_of_the_application_still_makes_its_tasks(rig: Rig) -> None:
    made: list[str] = []
    loop = asyncio.get_running_loop()

    def own(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        made.append(task.get_name())
        return task

    async def parent() -> None:
        await asyncio.create_task(asyncio.sleep(0))

    rig.task(parent)
    loop.set_task_factory(own)
    try:
        await rig.start()
        before = len(made)
        await rig.ended(await rig.enqueue("parent"))
        await rig.stop()
        assert len(made) > before
        assert loop.get_task_factory() is own
    finally:
        loop.set_task_factory(None)


async def test_a_function_sees_the_thread_it_runs_in_as_before(rig: Rig) -> None:
    names: set[str] = set()

    def where() -> None:
        names.add(threading.current_thread().name)

    rig.task(where)
    await rig.start(pools="*=1")
    for _ in range(3):
        await rig.ended(await rig.enqueue("where"))
    assert len(names) == 1


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
