"""Tasks behind a breaker, and hooks that hear of runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.worker.rig import Rig
from windlass.core.breaker import BreakerSpec, BreakerState
from windlass.core.hooks import EndEvent, StartEvent
from windlass.core.job import JobState, RunReason
from windlass.core.retry import RetrySpec
from windlass.core.signals import Discard
from windlass.errors import BreakerOpen

MAIL = BreakerSpec("mail", threshold=3, open_for=timedelta(milliseconds=400))
QUICK = RetrySpec(base=timedelta(milliseconds=1), jitter=0.0)


async def test_an_open_breaker_keeps_jobs_waiting_and_burns_no_attempts(rig: Rig) -> None:
    is_down = True
    runs: list[int] = []

    async def mail(n: int) -> None:
        runs.append(n)
        if is_down:
            raise ConnectionError("down")

    rig.task(mail, breaker=MAIL)
    ids = [await rig.enqueue("mail", {"n": n}, retry=QUICK, max_attempts=50) for n in range(30)]
    await rig.start(pools="*=2")

    async def opened() -> bool:
        found = await rig.store.breakers.get("mail")
        return found is not None and found.state is not BreakerState.CLOSED

    await rig.until(opened)
    await asyncio.sleep(0.3)
    # Three failures, what two slots had in flight, and a probe or two: the others never ran.
    assert len(runs) <= 10
    is_down = False
    for job_id in ids:
        assert (await rig.ended(job_id)).state is JobState.COMPLETED
    history = [(event.state, event.reason) for event in await rig.store.breakers.history("mail", 100)]
    assert history[0] == (BreakerState.CLOSED, "probe_succeeded")
    attempts = [(await rig.store.get(job_id)).attempt for job_id in ids]
    assert sum(attempts) == len(runs)


async def test_a_discarded_job_does_not_speak_against_the_service(rig: Rig) -> None:
    async def mail() -> None:
        raise Discard("bad address")

    rig.task(mail, breaker=BreakerSpec("mail", threshold=1))
    ids = [await rig.enqueue("mail") for _ in range(3)]
    await rig.start(pools="*=1")
    for job_id in ids:
        assert (await rig.ended(job_id)).state is JobState.FAILED
    assert await rig.store.breakers.get("mail") is None


async def test_an_open_breaker_inside_a_handler_snoozes_the_job(rig: Rig) -> None:
    async def fetch() -> None:
        at = await rig.store.clock()
        raise BreakerOpen("api", at + timedelta(hours=1))

    rig.task(fetch)
    job_id = await rig.enqueue("fetch")
    await rig.start()

    async def ran() -> bool:
        return bool(await rig.executions(job_id))

    await rig.until(ran)
    job = await rig.store.get(job_id)
    [execution] = await rig.executions(job_id)
    assert (job.state, job.attempt, execution.reason) == (JobState.SCHEDULED, 0, RunReason.SNOOZED)
    assert execution.finished_at is not None
    assert timedelta(minutes=55) < job.run_at - execution.finished_at < timedelta(minutes=65)


async def test_hooks_hear_of_starts_ends_and_failures(rig: Rig) -> None:
    heard: list[Any] = []

    async def slowly(event: Any) -> None:
        await asyncio.sleep(0)
        heard.append(("async", event))

    def fails(_: Any) -> None:
        raise RuntimeError("a hook of its own trouble")

    rig.hooks.add("start", lambda event: heard.append(("start", event)))
    rig.hooks.add("finish", fails)
    rig.hooks.add("finish", slowly)
    rig.hooks.add("fail", lambda event: heard.append(("fail", event)))

    async def work(ok: bool) -> None:  # noqa: FBT001 - a payload's field
        if not ok:
            raise ValueError("no")

    rig.task(work)
    good = await rig.enqueue("work", {"ok": True}, correlation_id="c")
    bad = await rig.enqueue("work", {"ok": False}, max_attempts=1)
    await rig.start()
    await rig.ended(good)
    await rig.ended(bad)
    await rig.stop()
    starts = [event for kind, event in heard if kind == "start"]
    assert {event.job_id for event in starts} == {good, bad}
    assert all(isinstance(event, StartEvent) for event in starts)
    [ended] = [event for kind, event in heard if kind == "async"]
    assert isinstance(ended, EndEvent)
    assert (ended.job_id, ended.state, ended.correlation_id, ended.error) == (good, JobState.COMPLETED, "c", None)
    [failed] = [event for kind, event in heard if kind == "fail"]
    assert (failed.job_id, failed.state, failed.error) == (bad, JobState.FAILED, "ValueError: no")
