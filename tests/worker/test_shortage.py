"""A system that has no thread or process to give costs time, and no job an attempt."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.worker import process_app
from tests.worker.living import list_zombies
from tests.worker.rig import Rig
from tests.worker.test_quarantine import make_suspects
from windlass.core.job import JobState

TARGET = "tests.worker.process_app:app"


def refuse_threads(monkeypatch: pytest.MonkeyPatch, prefix: str) -> list[str]:
    """Let no thread of such a name start; returns the names of those that were refused."""
    refused: list[str] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith(prefix):
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return refused


def shortages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "can be started" in record.getMessage()]


def reaches(tries: list[Any], count: int) -> Callable[[], Awaitable[bool]]:
    async def enough() -> bool:
        return len(tries) >= count

    return enough


@pytest.mark.parametrize("is_suspect", [False, True], ids=["process", "suspect"])
async def test_a_job_waits_uncharged_while_no_process_can_be_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_suspect: bool
) -> None:
    rig.registry = process_app.app.registry
    options: dict[str, Any] = {"payload": {"a": 2, "b": 3}, "max_attempts": 1}
    job_id = (await make_suspects(rig, "add", 1, **options))[0] if is_suspect else await rig.enqueue("add", **options)
    tries: list[float] = []
    with monkeypatch.context() as patch:

        def refuse(*_: Any, **__: Any) -> NoReturn:
            tries.append(time.monotonic())
            raise OSError(errno.EMFILE, "Too many open files")

        patch.setattr(subprocess, "Popen", refuse)
        await rig.start(pools="*=1", target=TARGET, lease=timedelta(seconds=20))
        await rig.until(reaches(tries, 3))
        # Each time the slot rested; the look for what rests comes every 50 ms.
        assert tries[2] - tries[0] > 1.8
        [message] = shortages(caplog)
        assert "Too many open files" in message
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, len(await rig.executions(job_id))) == (JobState.COMPLETED, 1, 1)


async def test_a_child_that_is_killed_before_it_is_ready_charges_nobody(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.registry = process_app.app.registry
    job_id = await rig.enqueue("add", {"a": 2, "b": 3}, max_attempts=1)
    killed: list[int] = []
    start = subprocess.Popen

    def start_and_kill(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        child = start(*args, **options)
        if len(killed) < 2:
            child.kill()
            killed.append(child.pid)
        return child

    monkeypatch.setattr(subprocess, "Popen", start_and_kill)
    await rig.start(pools="*=1", target=TARGET, lease=timedelta(seconds=20))
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, len(await rig.executions(job_id)), len(killed)) == (JobState.COMPLETED, 1, 1, 2)


async def test_a_child_that_no_thread_can_watch_is_ended_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.registry = process_app.app.registry
    job_id = await rig.enqueue("add", {"a": 2, "b": 3}, max_attempts=1)
    with monkeypatch.context() as patch:
        refused = refuse_threads(patch, "windlass-child")
        await rig.start(pools="*=1", target=TARGET, lease=timedelta(seconds=20))
        await rig.until(reaches(refused, 2))
        assert list_zombies() == []
    job = await rig.ended(job_id)
    assert (job.state, job.attempt, len(await rig.executions(job_id))) == (JobState.COMPLETED, 1, 1)


async def test_a_process_past_its_timeout_is_killed_where_no_thread_can_be_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rig.registry = process_app.app.registry
    payload = {"path": str(tmp_path / "pids")}
    job_id = await rig.enqueue("fork_and_hang", payload, max_attempts=1, timeout=timedelta(seconds=2))
    refused = refuse_threads(monkeypatch, "windlass-kill")
    await rig.start(pools="*=1", target=TARGET, lease=timedelta(seconds=20))
    assert (await rig.ended(job_id)).state is JobState.FAILED
    assert refused


async def test_functions_wait_uncharged_while_no_thread_can_be_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None: ...

    async def other() -> None: ...

    rig.task(work)
    rig.task(other)
    with monkeypatch.context() as patch:
        refused = refuse_threads(patch, "windlass-slot")
        await rig.start(pools="*=2")
        ids = [await rig.enqueue("work", max_attempts=1) for _ in range(3)]
        await rig.until(reaches(refused, 4))
        began = time.monotonic()
        await rig.until(reaches(refused, 6))
        # Two slots, each of which rests a second after a try.
        assert time.monotonic() - began > 0.7
        assert len(shortages(caplog)) == 1
        assert not [record for record in caplog.records if "ended early" in record.getMessage()]
        # Coroutines need no thread, and each slot takes what comes first when it has rested.
        beside = await rig.enqueue("other", priority=10)
        assert (await rig.ended(beside)).state is JobState.COMPLETED
    for job_id in ids:
        job = await rig.ended(job_id)
        assert (job.state, job.attempt, len(await rig.executions(job_id))) == (JobState.COMPLETED, 1, 1)


async def test_a_slot_that_has_its_thread_goes_on_while_another_gets_none(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        time.sleep(0.01)

    rig.task(work)
    await rig.start(pools="*=2")
    await rig.ended(await rig.enqueue("work"))
    refuse_threads(monkeypatch, "windlass-slot")
    began = time.monotonic()
    ids = [await rig.enqueue("work", max_attempts=1) for _ in range(60)]
    for job_id in ids:
        assert (await rig.ended(job_id)).state is JobState.COMPLETED
    assert time.monotonic() - began < 10


async def test_a_worker_whose_slots_rest_stops_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None: ...

    rig.task(work)
    refused = refuse_threads(monkeypatch, "windlass-slot")
    job_id = await rig.enqueue("work", max_attempts=1)
    worker = await rig.start(pools="*=1", grace=timedelta(seconds=30))
    await rig.until(reaches(refused, 1))
    worker.stop()
    [(_, running, _)] = rig.workers
    async with asyncio.timeout(5):
        await running
    job = await rig.store.get(job_id)
    assert (job.attempt, job.state in {JobState.SCHEDULED, JobState.PENDING}) == (0, True)
