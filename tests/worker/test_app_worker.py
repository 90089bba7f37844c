"""An application with its worker in one process, as people write it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from windlass import Job, JobContext, JobFailed, JobState, Windlass
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.ids import job_uuid
from windlass.core.page import JobQuery


async def test_an_application_runs_its_own_jobs_and_children_know_their_parent(url: str) -> None:
    app = Windlass(url)

    @app.lifespan
    async def resources() -> AsyncIterator[dict[str, str]]:
        yield {"greeting": "hello"}

    @app.task
    async def child(n: int) -> int:
        return n

    @app.task
    async def parent(ctx: JobContext, name: str) -> str:
        await ctx.enqueue(child, n=1)
        await child.enqueue(n=2)
        return f"{ctx.state['greeting']} {name}"

    @app.task
    def blocking_parent(ctx: JobContext) -> None:
        ctx.enqueue_sync(child, n=3)

    async with app, app.working():
        job = await parent.using(correlation_id="user-action-123").enqueue(name="ann")
        assert await app.wait(job, timeout=20) == "hello ann"
        plain = await blocking_parent.enqueue()
        await app.wait(plain, timeout=20)
        children = await _completed(app, "child", 3)
        found = {(one.payload_json, one.parent_id, one.correlation_id) for one in children}
    assert found == {
        ('{"n":1}', job.id, "user-action-123"),
        ('{"n":2}', job.id, "user-action-123"),
        ('{"n":3}', plain.id, str(job_uuid(plain.id))),
    }


async def _completed(app: Windlass, task: str, number: int) -> Sequence[Job]:
    """Wait until so many jobs of a task are completed."""
    query = JobQuery(filter=JobFilter(tasks=(task,), states=(StateFilter(JobState.COMPLETED),)))
    async with asyncio.timeout(20):
        while len(jobs := (await app.list(query)).jobs) < number:  # noqa: ASYNC110 - it says so in the database
            await asyncio.sleep(0.01)
    return jobs


async def test_a_guarded_block_in_a_handler_tries_the_breaker_in_the_name_of_its_job(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def call(ctx: JobContext) -> bool:
        async with app.breaker("service"):
            trying = await app.breakers.get("service")
            return trying is not None and (trying.state, trying.probe.job_id) == ("half_open", ctx.job_id)

    @app.task(breaker="service")
    def call_gated() -> None:
        with app.breaker("service"):
            """Is let through: the job itself was claimed as the probe."""

    async with app, app.working():
        for task in (call, call_gated):
            await app.breakers.force_open("service", "1ms")
            assert await app.wait(await task.enqueue(), timeout=20) in {True, None}
            assert (await app.breakers.get("service")).state == "closed"  # type: ignore[union-attr]


async def test_a_guarded_block_that_fails_in_handlers_opens_the_breaker_and_keeps_its_own_error(url: str) -> None:
    app = Windlass(url, breaker_threshold=2)

    @app.task(max_attempts=1)
    async def call() -> None:
        async with app.breaker("service"):
            raise OSError("away")

    async with app, app.working():
        for _ in range(2):
            with pytest.raises(JobFailed, match="away"):
                await app.wait(await call.enqueue(), timeout=20)
        assert (await app.breakers.get("service")).state == "open"  # type: ignore[union-attr]


async def test_a_worker_is_known_to_the_fleet_while_it_works(url: str) -> None:
    app = Windlass(url)

    @app.task(lane="fast")
    async def email() -> None: ...

    async with app:
        async with app.working():
            store = await app.store()
            async with asyncio.timeout(20):
                while not (workers := await store.workers.list()):  # noqa: ASYNC110 - it says so in the database
                    await asyncio.sleep(0.01)
            assert (workers[0].is_online, workers[0].tasks_json) == (True, '["email"]')
            assert await store.tasks.knows("email")
        [worker] = await store.workers.list()
        assert not worker.is_online


async def test_a_paused_worker_finishes_what_runs_and_claims_nothing_until_it_is_resumed(url: str) -> None:
    app = Windlass(url)
    gate = asyncio.Event()

    @app.task
    async def wait() -> None:
        await gate.wait()

    @app.task
    async def hello() -> str:
        return "hello"

    async with app, app.working():
        running = await wait.enqueue()
        await _until(lambda: _is_running(app, running.id))
        [worker] = await app.workers.list()
        await app.workers.pause(worker.id)
        # Nothing else shows that the worker knows: with its heartbeat comes what its process takes.
        await _until(lambda: _has_beaten(app))
        waiting = await hello.enqueue()
        gate.set()
        await app.wait(running, timeout=20)
        assert (await app.explain(waiting)).verdict == "workers_paused"
        await asyncio.sleep(0.3)
        assert (await app.get(waiting)).state is JobState.PENDING
        await app.workers.resume(worker.id)
        assert await app.wait(waiting, timeout=20) == "hello"


async def _is_running(app: Windlass, job: int) -> bool:
    return (await app.get(job)).state is JobState.RUNNING


async def _has_beaten(app: Windlass) -> bool:
    [worker] = await app.workers.list()
    return worker.memory_mb is not None


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():  # noqa: ASYNC110 - it says so in the database
            await asyncio.sleep(0.01)
