"""A coroutine that blocks its event loop is found, stopped with its process, and kept out of other lanes."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest

from tests.crash.processes import until
from tests.crash.test_real_worker import Site, all_in, enqueue, site
from windlass.core.job import JobState, RunReason, RunStatus
from windlass.store import Store

__all__ = ["site"]


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_GRACE", "1s")


async def test_a_process_that_is_blocked_beyond_a_timeout_is_replaced_and_nobody_else_charged(site: Site, store: Store) -> None:
    others = [*await enqueue(store, "patient", 2), *await enqueue(store, "work_in_thread", payload={"seconds": 20})]
    boss = site.start("--pools", "*=4")
    await until(lambda: site.count("start") == 3, "the others to start")
    [stuck] = await enqueue(store, "stuck", max_attempts=1)
    await all_in(store, [stuck], JobState.FAILED, within=20)
    [run] = await store.list_executions(stuck)
    assert (run.status, run.reason) == (RunStatus.FAILED, RunReason.TIMED_OUT)
    site.mark("release")
    await until(lambda: site.count("start") >= 4 + len(others), "the others to start again", within=20)
    jobs = [await store.get(job_id) for job_id in others]
    assert [(job.attempt, job.crashes) for job in jobs] == [(1, 0)] * 3
    for job_id in others:
        given_back = (await store.list_executions(job_id))[-1]
        assert given_back.reason is RunReason.RELEASED
    boss.send_signal(signal.SIGTERM)
    assert await site.end(boss) == 0
    logged = site.log()
    for text in (
        "event loop has been blocked",
        "this process is replaced",
        'job failed error="timed out after 1 s" state=failed',
    ):
        [line] = [line for line in logged.splitlines() if text.partition(" error=")[0] in line]
        assert f"job_id={stuck} task=stuck" in line, text
        assert text.partition(" error=")[2] in line
    assert "time.sleep(300)" in logged
    assert sorted(worker.loop_blocks for worker in await store.workers.list()) == [0, 1]


async def test_pools_in_processes_of_their_own_do_not_hold_each_other_up(site: Site, store: Store) -> None:
    boss = site.start("--pools", "fast=1,slow=1,*=1", "--process-per-pool")
    warm = await enqueue(store, "work", lane="fast")
    await all_in(store, warm, JobState.COMPLETED)
    [blocking] = await enqueue(store, "blocks", payload={"seconds": 4}, lane="slow")
    await until(lambda: (blocking, "start") in starts(site), "the blocker to start")
    began = time.monotonic()
    quick = [*await enqueue(store, "work", 5, lane="fast"), *await enqueue(store, "work", 5)]
    await all_in(store, quick, JobState.COMPLETED, within=3)
    assert time.monotonic() - began < 3
    assert "end" not in {word for job, word in starts(site) if job == blocking}
    await all_in(store, [blocking], JobState.COMPLETED)
    pids = {lane: {pid for job, pid in site.lines("start") if job in jobs} for lane, jobs in lanes(warm, quick, blocking).items()}
    assert len(pids["fast"]) == len(pids["slow"]) == 1
    assert pids["fast"] != pids["slow"]
    await until(partial(has_counted_a_block, store), "the block to be counted", within=15)
    boss.send_signal(signal.SIGTERM)
    assert await site.end(boss) == 0


def starts(site: Site) -> set[tuple[int, str]]:
    return {(job, word) for word in ("start", "end") for job, _ in site.lines(word)}


def lanes(warm: list[int], quick: list[int], blocking: int) -> dict[str, set[int]]:
    return {"fast": {*warm, *quick[:5]}, "slow": {blocking}}


async def has_counted_a_block(store: Store) -> bool:
    return sorted(worker.loop_blocks for worker in await store.workers.list()) == [0, 0, 1]


async def test_a_short_block_is_logged_once_and_nothing_is_stopped(site: Site, store: Store) -> None:
    boss = site.start("--pools", "*=2")
    jobs = await enqueue(store, "blocks", payload={"seconds": 2.2}, lane="slow")
    await all_in(store, jobs, JobState.COMPLETED)
    boss.send_signal(signal.SIGTERM)
    assert await site.end(boss) == 0
    assert site.log().count("event loop has been blocked") == 1
    assert [(await store.get(job_id)).executions for job_id in jobs] == [1]
