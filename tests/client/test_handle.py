"""What an enqueue answers leads to the job's result."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import fresh_url
from windlass import Enqueued, EnqueuedJob, InvalidPayload, JobFailed, WaitTimeout, Windlass


@pytest.fixture(params=["sqlite-file", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Windlass]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as url:
        yield Windlass(url)


async def test_it_waits_for_the_result_of_its_job(app: Windlass) -> None:
    @app.task
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @app.task(max_attempts=1)
    def fail() -> None:
        raise ValueError("no")

    async with app:
        job = await greet.using(unique_key="ann").enqueue("ann")
        again = await greet.using(unique_key="ann").enqueue("ann")
        assert (again, again.is_duplicate) == (Enqueued(job.id, is_duplicate=True), True)
        with pytest.raises(WaitTimeout):
            await job.result(timeout="10ms")
        async with app.working():
            assert await job.result(timeout=20) == "Hello, ann!"
            assert await asyncio.to_thread(again.result_sync, 20) == "Hello, ann!"
            with pytest.raises(JobFailed, match="ValueError: no"):
                await (await fail.enqueue()).result(timeout=20)
            blocking = await asyncio.to_thread(greet.enqueue_sync, "bob")
            assert await blocking.result(timeout=20) == "Hello, bob!"


async def test_it_names_the_job_wherever_one_is_named_and_travels_as_what_it_is(app: Windlass) -> None:
    @app.task
    async def greet(name: str) -> None: ...

    async with app:
        job = await greet.enqueue("ann")
        assert isinstance(job, EnqueuedJob)
        assert (await app.get(job)).id == job.id == job[0]
        assert [pickle.loads(pickle.dumps(job)), copy.deepcopy(job)] == [Enqueued(job.id)] * 2


async def test_checked_calls_and_mappings_may_be_mixed_in_one_batch(app: Windlass) -> None:
    @app.task
    async def greet(name: str, greeting: str = "Hello") -> str:
        return f"{greeting} {name}"

    @app.task(unique=True)
    async def once(number: int) -> None: ...

    async with app:
        jobs = await greet.enqueue_many([greet.call("ann"), greet.call(name="bob", greeting="Hi"), {"name": "eve"}])
        payloads = [(await app.get(job)).payload_json for job in jobs]
        assert payloads == ['{"name":"ann"}', '{"name":"bob","greeting":"Hi"}', '{"name":"eve"}']
        assert [jobs[-1], *jobs[:2]] == [jobs[2], jobs[0], jobs[1]]
        assert jobs == list(jobs) == pickle.loads(pickle.dumps(jobs))
        async with app.working():
            assert [await job.result(timeout=20) for job in jobs] == ["Hello ann", "Hi bob", "Hello eve"]
        first, second = await once.enqueue_many([once.call(1), once.call(1)])
        assert second == Enqueued(first.id, is_duplicate=True)
        with pytest.raises(InvalidPayload, match="number"):
            await greet.enqueue_many([once.call(1)])  # type: ignore[list-item]  # another task's
