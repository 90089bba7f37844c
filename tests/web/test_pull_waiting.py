"""Pull workers that wait: woken by whoever enqueues, served in the order they came, and nothing is lost on those who leave."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import httpx2

from tests.store.test_breakers import OPEN, gate
from tests.web.serving import Served, listening
from tests.web.test_pull import SQLITE_ONLY, enqueue, pull, report, store_of
from windlass import Windlass
from windlass.core.breaker import BreakerSpec
from windlass.core.job import JobState, Lease, NewJob
from windlass.core.pull import Pull
from windlass.store import open_store

WORKER = {"x-internal-secret": "shared-worker-secret"}


async def until(has_happened: Callable[[], bool | Awaitable[bool]], pause_s: float = 0.002) -> None:
    """Wait for what no event tells of."""
    async with asyncio.timeout(10):
        while not (answer if isinstance(answer := has_happened(), bool) else await answer):  # noqa: ASYNC110 - there is none
            await asyncio.sleep(pause_s)


async def settle(web: Served, waiting: int) -> None:
    """Wait until so many stand at the desk and have been looked for."""
    await until(lambda: sum(not waiter.is_new for waiter in web.server.pull_queue._waiting) == waiting)


async def in_hand(web: Served) -> None:
    """Wait until a job is being taken for somebody."""
    await until(lambda: any(one.is_in_hand for one in web.server.pull_queue._waiting), 0)


async def left_in(web: Served, number: int, state: JobState) -> None:
    store = await store_of(web)

    async def is_there() -> bool:
        return (await store.get(number)).state is state

    await until(is_there)


@asynccontextmanager
async def waiting(web: Served, *workers: str, query: str = "wait=20") -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Let workers come one after the other and wait."""
    async with asyncio.TaskGroup() as group:
        tasks = []
        for worker in workers:
            tasks.append(group.create_task(pull(web, f"?{query}", worker)))
            await settle(web, len(tasks))
        yield tasks


async def test_a_job_that_another_process_enqueues_is_handed_over_at_once(web: Served, url: str) -> None:
    other = open_store(url, rng=Random(1))
    try:
        # Listening takes a moment on PostgreSQL.
        wakeups = (await store_of(web)).wakeups
        await until(lambda: wakeups.is_listening)
        async with waiting(web, "w1") as [task]:
            began = time.monotonic()
            [made] = await other.enqueue([NewJob(task="leads", lane="pull")])
            got = await task
            assert time.monotonic() - began < 0.9
        assert got["job"]["id"] == made.id
    finally:
        await other.aclose()


async def test_who_came_first_is_served_first(web: Served) -> None:
    names = [f"w{place}" for place in range(8)]
    async with waiting(web, *names) as tasks:
        enqueued = await (await store_of(web)).enqueue([NewJob(task="leads", lane="pull") for _ in range(5)])
        got = [(await task)["job"]["id"] for task in tasks[:5]]
        assert got == [one.id for one in enqueued]
        assert not any(task.done() for task in tasks[5:])
        await enqueue(web)
        assert (await tasks[5])["job"] is not None
        assert not tasks[6].done()
        web.server.stopping.set()


async def test_a_job_that_becomes_due_wakes_those_who_wait(web: Served) -> None:
    store = await store_of(web)
    number = await enqueue(web, delay="300ms")
    async with waiting(web, "w1") as [task]:
        while not (await store.promote()).jobs:  # noqa: ASYNC110 - a promoter without its sleep
            await asyncio.sleep(0.01)
        assert (await task)["job"]["id"] == number


async def test_a_resumed_lane_wakes_those_who_wait(web: Served) -> None:
    await enqueue(web)
    await web.ask("POST", "/api/v1/lanes/pull/pause")
    async with waiting(web, "w1") as [task]:
        await web.ask("POST", "/api/v1/lanes/pull/resume")
        assert (await task)["job"] is not None


async def test_the_end_of_a_wait_says_that_there_is_nothing_or_that_the_lane_is_paused(web: Served) -> None:
    began = time.monotonic()
    assert await pull(web, "?wait=0.05") == {"job": None}
    assert time.monotonic() - began >= 0.05
    await web.ask("POST", "/api/v1/lanes/pull/pause")
    assert await pull(web, "?wait=0.05") == {"job": None, "stopped": True}


@SQLITE_ONLY
async def test_a_server_that_stops_sends_everybody_home(web: Served) -> None:
    async with waiting(web, "w1", "w2") as tasks:
        web.server.stopping.set()
        assert [await task for task in tasks] == [{"job": None}] * 2
    assert await pull(web, "?wait=20") == {"job": None}


async def test_one_who_waits_for_another_task_does_not_hold_up_the_line(web: Served) -> None:
    async with waiting(web, "w1", query="wait=20&task=maps"):
        async with waiting(web, query="wait=20"):
            number = await enqueue(web)
            assert (await pull(web, "?wait=5", "w2"))["job"]["id"] == number
        web.server.stopping.set()


async def test_a_breaker_that_is_due_is_tried_and_the_others_are_served_in_the_same_round(web: Served) -> None:
    store = await store_of(web)
    await gate(store, "mailer")
    assert await store.breakers.record(BreakerSpec("mail", 1, timedelta(milliseconds=1)), succeeded=False, failures=1) is OPEN
    async with waiting(web, "w1", "w2", "w3") as tasks:
        await store.enqueue([NewJob(task=task, lane="pull") for task in ("mailer", "mailer", "leads")])
        probe, other = [(await task)["job"] for task in tasks[:2]]
        assert (probe["task"], other["task"]) == ("mailer", "leads")
        assert not tasks[2].done()
        await report(web, probe, worker="w1", done=True)
        assert (await tasks[2])["job"]["task"] == "mailer"


def pull_of(worker: str, pull_id: str | None = None) -> Pull:
    return Pull(("pull",), Lease(hash(worker) % 10**9 + 1, worker, timedelta(seconds=30)), pull_id=pull_id)


async def test_one_who_leaves_the_line_takes_no_job(web: Served) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        left = group.create_task(web.server.pull_queue.take(pull_of("w1"), wait_s=20, gone=gone))
        await settle(web, 1)
        gone.set_result(None)
        assert await left is None
    number = await enqueue(web)
    assert (await pull(web, worker="w2"))["job"]["id"] == number


async def test_a_job_that_was_taken_for_one_who_left_goes_back_at_once_uncharged(web: Served) -> None:
    store = await store_of(web)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    number = await enqueue(web)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(web.server.pull_queue.take(pull_of("w1"), wait_s=20, gone=gone))
        await in_hand(web)
        gone.set_result(None)
        assert await task is None
    await left_in(web, number, JobState.SCHEDULED)
    left = await store.get(number)
    assert (left.attempt, left.executions, left.token) == (0, 0, None)
    await store.promote()
    assert (await pull(web, worker="w2"))["job"]["attempts"] == 1


async def test_a_named_pull_that_was_left_is_there_when_it_is_asked_for_again(web: Served) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    number = await enqueue(web)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(web.server.pull_queue.take(pull_of("w1", "p1"), wait_s=20, gone=gone))
        await in_hand(web)
        gone.set_result(None)
        assert await task is None
    await left_in(web, number, JobState.RUNNING)
    assert (await pull(web, "?pull_id=p1", "w1"))["job"]["id"] == number
    assert (await (await store_of(web)).get(number)).attempt == 1


async def test_two_waits_under_one_pull_id_get_one_job(web: Served) -> None:
    async with waiting(web, "w1", "w1", query="wait=20&pull_id=p1") as tasks:
        number = await enqueue(web)
        await enqueue(web)
        first, second = [(await task)["job"] for task in tasks]
    assert (first["id"], second["id"], first["attempt_id"] == second["attempt_id"]) == (number, number, True)


@SQLITE_ONLY
async def test_a_database_that_fails_is_told_to_those_who_do_not_wait(web: Served) -> None:
    await (await store_of(web)).aclose()
    assert (await web.client.get("/api/pull_job", headers={**WORKER, "x-worker-id": "w1"})).status_code == 503


def hang_up(port: int, path: str) -> None:
    """Ask, and leave without hearing the answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines = [
            f"GET {path} HTTP/1.1",
            f"host: 127.0.0.1:{port}",
            "x-worker-id: gone",
            "x-internal-secret: shared-worker-secret",
        ]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        time.sleep(0.1)


@SQLITE_ONLY
async def test_clients_that_hang_up_swallow_no_jobs(url: str) -> None:
    """Through a socket: the server must notice by itself that nobody is there."""
    app = Windlass(url, admin_token="static-admin-token", worker_secret="shared-worker-secret")
    with listening(app) as port:
        await asyncio.gather(*(asyncio.to_thread(hang_up, port, "/api/pull_job?wait=25") for _ in range(10)))
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            headers = {"authorization": "Bearer static-admin-token"}
            job = {"task": "leads", "lane": "pull"}
            number = (await client.post("/api/v1/jobs", headers=headers, json=job)).json()["number"]
            got = await client.get("/api/pull_job?wait=5", headers={**WORKER, "x-worker-id": "w1"})
            assert got.json()["job"]["id"] == number


@SQLITE_ONLY
async def test_a_hundred_who_wait_cost_little_and_are_served_quickly(url: str) -> None:
    """A sanity check of what `dev.py bench pull` measures."""
    app = Windlass(url, admin_token="static-admin-token", worker_secret="shared-worker-secret")
    with listening(app) as port:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=30) as client:
            store = open_store(url, rng=Random(1))
            async with asyncio.TaskGroup() as group:
                for place in range(100):
                    group.create_task(_expect_job(client, f"w{place}"))
                await asyncio.sleep(1)
                began = time.process_time()
                await asyncio.sleep(1)
                share = time.process_time() - began
                await store.enqueue([NewJob(task="leads", lane="pull") for _ in range(100)])
            assert sum(count.jobs for count in await store.count_jobs() if count.state is JobState.RUNNING) == 100
            # Server and clients together, on a machine that others use too.
            assert share < 0.5
            await store.aclose()


async def _expect_job(client: httpx2.AsyncClient, worker: str) -> None:
    answer = await client.get("/api/pull_job?wait=25", headers={**WORKER, "x-worker-id": worker})
    assert answer.json()["job"] is not None
