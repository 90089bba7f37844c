"""Jobs that may have killed a worker run where they can harm no other."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.worker import process_app
from tests.worker.rig import Rig
from windlass.core.job import Claimed, JobState, Lease, RunReason, Slices
from windlass.worker import quarantine

TARGET = "tests.worker.process_app:app"
SHORT = timedelta(milliseconds=1)


async def make_suspects(rig: Rig, task: str, count: int, **options: Any) -> list[int]:
    """Enqueue jobs whose worker dies with them."""
    ids = [await rig.enqueue(task, **options) for _ in range(count)]
    lease = Lease(rig.rng.randrange(1, 2**62), "dead", SHORT)
    taken = await rig.store.claim(await rig.store.slices(), count, lease, started=False)
    assert sorted(job.id for job in taken) == ids

    async def is_back() -> bool:
        await rig.store.reclaim()
        await rig.store.promote()
        return all([(await rig.store.get(job_id)).state is JobState.PENDING for job_id in ids])

    await rig.until(is_back)
    assert {(await rig.store.get(job_id)).crashes for job_id in ids} == {1}
    return ids


async def test_a_suspect_runs_alone_where_there_can_be_no_child(rig: Rig) -> None:
    running: set[str] = set()
    beside: list[set[str]] = []

    async def suspect() -> None:
        beside.append(set(running))
        running.add("suspect")
        await asyncio.sleep(0.1)
        beside.append(running - {"suspect"})
        running.discard("suspect")

    async def other(number: int) -> None:
        running.add(f"other {number}")
        await asyncio.sleep(0.05)
        running.discard(f"other {number}")

    rig.task(suspect)
    rig.task(other)
    suspects = await make_suspects(rig, "suspect", 2)
    others = [await rig.enqueue("other", {"number": number}) for number in range(100)]
    await rig.start(pools="*=3", lease=timedelta(seconds=1))
    for job_id in suspects + others:
        job = await rig.ended(job_id)
        assert (job.state, job.attempt, job.crashes) == (JobState.COMPLETED, 1, 0)
    assert beside == [set(), set()] * 2


async def test_a_suspect_that_must_wait_for_long_work_holds_up_other_jobs_only_for_a_while(rig: Rig) -> None:
    release = asyncio.Event()
    ran: list[float] = []

    async def suspect() -> None: ...

    async def long() -> None:
        await release.wait()

    async def short() -> None:
        ran.append(time.monotonic())

    for function in (suspect, long, short):
        rig.task(function)
    [suspect_job] = await make_suspects(rig, "suspect", 1)
    long_job = await rig.enqueue("long")
    started = time.monotonic()
    worker = await rig.start(pools="*=2", lease=timedelta(seconds=0.6))
    [pool] = worker._fed
    held: list[float] = []
    free: list[float] = []
    hold, let_go = pool.hold, pool.let_go
    pool.hold = lambda: (held.append(time.monotonic()), hold())[1]  # type: ignore[method-assign,func-returns-value]
    pool.let_go = lambda: (free.append(time.monotonic()), let_go())[1]  # type: ignore[method-assign,func-returns-value]
    await rig.ended(long_job, JobState.RUNNING)
    while len(held) < 2:
        await rig.ended(await rig.enqueue("short"))
    assert free[0] - held[0] < 0.25 * (held[1] - started)
    assert [at for at in ran if free[0] < at < held[1]]
    assert (await rig.store.get(suspect_job)).state is JobState.PENDING
    release.set()
    assert (await rig.ended(suspect_job)).state is JobState.COMPLETED


async def test_a_suspect_runs_in_a_child_beside_other_work(rig: Rig) -> None:
    for spec in process_app.app.registry:
        rig.registry.add(spec)

    async def other() -> int:
        await asyncio.sleep(0.01)
        return os.getpid()

    rig.task(other)
    [killer] = await make_suspects(rig, "segfault", 1, max_attempts=2)
    [innocent] = await make_suspects(rig, "add", 1, payload={"a": 2, "b": 3})
    others = [await rig.enqueue("other") for _ in range(50)]
    await rig.start(pools="*=3", target=TARGET)
    for job_id in others:
        assert (await rig.ended(job_id)).attempt == 1
    assert (await rig.ended(innocent)).state is JobState.COMPLETED
    assert json.loads((await rig.executions(innocent))[0].result_json or "") == 5
    assert (await rig.ended(killer)).state is JobState.FAILED
    assert [run.reason for run in await rig.executions(killer)] == [RunReason.WORKER_CRASHED] * 2
    assert (await rig.store.get(killer)).crashes > 0


async def test_a_suspect_that_is_cancelled_or_stopped_leaves_the_process_to_others(rig: Rig) -> None:
    begun = asyncio.Event()

    async def suspect() -> None:
        begun.set()
        await asyncio.sleep(60)

    async def other() -> None: ...

    rig.task(suspect)
    rig.task(other)
    [job_id] = await make_suspects(rig, "suspect", 1)
    await rig.start(pools="*=2")
    await begun.wait()
    behind = await rig.enqueue("other")
    await asyncio.sleep(0.3)
    assert (await rig.store.get(behind)).state is JobState.PENDING
    await rig.store.cancel([job_id])
    assert (await rig.ended(behind)).state is JobState.COMPLETED


async def test_a_shutdown_gives_back_a_suspect_that_does_not_stop_in_time(rig: Rig, tmp_path: Path) -> None:
    rig.registry = process_app.app.registry
    note = tmp_path / "pids"
    [suspect] = await make_suspects(rig, "fork_and_hang", 1, payload={"path": str(note)}, max_attempts=1)
    grace = timedelta(milliseconds=100)
    await rig.start(pools="*=1", target=TARGET, lease=timedelta(seconds=20), grace=grace, stop_grace=grace)

    async def begun() -> bool:
        return note.exists()

    await rig.until(begun)
    await rig.stop()
    job = await rig.store.get(suspect)
    [execution] = await rig.executions(suspect)
    assert (job.attempt, job.crashes, execution.reason) == (0, 1, RunReason.RELEASED)


async def test_suspects_start_further_apart_when_their_claims_are_slow(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()
    begun, ended, limits = list[float](), list[float](), list[int]()
    claim = rig.store.claim_suspects

    async def claim_slowly(slices: Slices, limit: int, lease: Lease) -> list[Claimed]:
        begun.append(time.monotonic())
        await asyncio.sleep(0.05)
        suspects = await claim(slices, limit, lease)
        ended.append(time.monotonic())
        limits.append(limit)
        return suspects

    async def other() -> None:
        await release.wait()

    for spec in process_app.app.registry:
        rig.registry.add(spec)
    rig.task(other)
    suspects = await make_suspects(rig, "add", 5, payload={"a": 2, "b": 3})
    await rig.enqueue("other")
    monkeypatch.setattr(rig.store, "claim_suspects", claim_slowly)
    # As many as there are slots go at once, as after an ordinary loss.
    monkeypatch.setattr(quarantine, "_AT_FIRST", 2)
    await rig.start(pools="*=3", target=TARGET, lease=timedelta(seconds=20))
    for job_id in suspects:
        assert (await rig.ended(job_id)).state is JobState.COMPLETED
    release.set()
    assert limits[:3] == [3, 1, 1]
    # The children run by now: nothing else keeps the third claim back.
    assert begun[2] - ended[1] > 0.4
