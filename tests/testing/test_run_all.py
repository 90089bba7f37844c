from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.testing.conftest import NOWHERE
from windlass import Cancel, Discard, JobContext, JobFailed, JobState, NewJob, Retry, Snooze, Windlass, WindlassError
from windlass.core.cadence import Every, Recurrence
from windlass.core.job import RunReason, RunStatus
from windlass.errors import InvalidPayload, StoreError
from windlass.testing import FakeClock, enqueued, fresh, run_all, run_all_sync


async def test_what_is_due_runs_and_is_told(app: Windlass) -> None:
    @app.task
    async def add(left: int, right: int) -> int:
        return left + right

    job = await add.enqueue(left=2, right=3)
    [ran] = await run_all(app)
    assert (ran.job_id, ran.task, ran.arguments, ran.attempt) == (job.id, "add", {"left": 2, "right": 3}, 1)
    assert (ran.status, ran.state, ran.result, ran.error) == (RunStatus.COMPLETED, JobState.COMPLETED, 5, None)
    assert await run_all(app) == []


async def test_functions_run_too(app: Windlass) -> None:
    @app.task
    def where() -> str:
        return threading.current_thread().name

    await where.enqueue()
    [ran] = await run_all(app)
    assert ran.result != threading.current_thread().name


async def test_a_task_for_child_processes_runs_here(app: Windlass) -> None:
    seen: list[int] = []

    @app.task(isolation="process", memory_limit_mb=64)
    def crunch(number: int) -> None:
        seen.append(number)

    @app.task(isolation="process")
    async def fetch(number: int) -> None:
        seen.append(number)

    await crunch.enqueue(number=1)
    await fetch.enqueue(number=2)
    await run_all(app)
    assert seen == [1, 2]


def test_it_runs_without_an_event_loop(url: str, clock: FakeClock) -> None:
    app = Windlass(NOWHERE)

    @app.task
    async def outer() -> None:
        await inner.enqueue()

    @app.task
    def inner() -> None: ...

    with fresh(app, url, clock=clock):
        for _ in range(2):
            outer.enqueue_sync()
            assert [ran.task for ran in run_all_sync(app)] == ["outer", "inner"]


async def test_the_sync_twin_works_inside_a_running_loop(app: Windlass) -> None:
    @app.task
    async def email() -> None: ...

    await email.enqueue()
    assert len(run_all_sync(app)) == 1


async def test_what_handlers_enqueue_runs_as_well(app: Windlass) -> None:
    @app.task
    async def count(left: int) -> None:
        if left:
            await count.enqueue(left=left - 1)

    first = await count.enqueue(left=3)
    assert [ran.arguments["left"] for ran in await run_all(app)] == [3, 2, 1, 0]
    assert enqueued(app, count, left=2)[0].parent_id == first.id


async def test_the_most_urgent_goes_first_and_each_run_is_over_before_the_next(app: Windlass) -> None:
    states: list[list[str]] = []

    @app.task
    async def look(name: str) -> None:  # noqa: ARG001 - makes the jobs differ
        states.append([job.state for job in enqueued(app)])

    for name, priority in (("late", 0), ("first", 9), ("second", 5)):
        await look.using(priority=priority).enqueue(name=name)
    ran = await run_all(app)
    assert [one.arguments["name"] for one in ran] == ["first", "second", "late"]
    assert states == [
        ["pending", "running", "pending"],
        ["pending", "completed", "running"],
        ["running", "completed", "completed"],
    ]


async def test_jobs_may_run_side_by_side(app: Windlass) -> None:
    met = asyncio.Barrier(3)

    @app.task
    async def meet() -> None:
        await met.wait()

    await meet.enqueue_many([{}, {}, {}])
    assert len(await run_all(app, at_once=3)) == 3


async def test_a_failed_job_waits_for_its_time(app: Windlass, clock: FakeClock) -> None:
    @app.task(max_attempts=2)
    async def fail() -> None:
        raise ValueError("no")

    job = await fail.enqueue()
    [ran] = await run_all(app)
    assert (ran.status, ran.reason, ran.state) == (RunStatus.FAILED, RunReason.ERROR, JobState.SCHEDULED)
    assert ran.message == "ValueError: no"
    assert isinstance(ran.error, ValueError)
    assert await run_all(app) == []
    clock.advance(minutes=1)
    [again] = await run_all(app)
    assert (again.attempt, again.state) == (2, JobState.FAILED)
    assert len(await app.dead_letters_of(job)) == 1


async def test_retries_are_run_through_on_request(app: Windlass, clock: FakeClock) -> None:
    @app.task(max_attempts=3)
    async def fail() -> None:
        raise ValueError("no")

    @app.task
    async def later() -> None: ...

    await fail.enqueue()
    await later.using(delay="1h").enqueue()
    before = clock.now()
    ran = await run_all(app, retries=True)
    assert [(one.task, one.attempt) for one in ran] == [("fail", 1), ("fail", 2), ("fail", 3)]
    assert clock.now() == before


async def test_a_handlers_error_can_reach_the_test(app: Windlass) -> None:
    @app.task
    async def fail(text: str) -> None:
        raise KeyError(text)

    for text in ("one", "two"):
        await fail.enqueue(text=text)
    with pytest.raises(KeyError, match="one"):
        await run_all(app, raise_errors=True)
    with pytest.raises(KeyError, match="two"):
        run_all_sync(app, raise_errors=True)
    assert [job.attempt for job in enqueued(app)] == [1, 1]


async def test_an_error_in_a_function_reaches_the_test_from_its_thread(app: Windlass) -> None:
    @app.task
    def fail() -> None:
        raise LookupError("no")

    await fail.enqueue()
    with pytest.raises(LookupError, match="no"):
        await run_all(app, raise_errors=True)


async def test_a_payload_that_does_not_fit_reaches_the_test(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    await app.enqueue_jobs([NewJob(task="email", payload='{"to":5}')])
    with pytest.raises(InvalidPayload, match="to: must be str"):
        await run_all(app, raise_errors=True)
    assert enqueued(app)[0].state is JobState.FAILED


async def test_signals_are_kept_and_are_no_errors(app: Windlass) -> None:
    @app.task
    async def signal(kind: str) -> None:
        raise {"snooze": Snooze("5m"), "cancel": Cancel("not needed")}[kind]

    await signal.enqueue(kind="snooze")
    await signal.enqueue(kind="cancel")
    ran = await run_all(app, raise_errors=True)
    assert [(one.reason, one.state) for one in ran] == [
        (RunReason.SNOOZED, JobState.SCHEDULED),
        (RunReason.CANCELLED, JobState.CANCELLED),
    ]


async def test_retry_and_discard_are_failures(app: Windlass, clock: FakeClock) -> None:
    @app.task
    async def discard() -> None:
        raise Discard("never")

    @app.task
    async def retry() -> None:
        raise Retry("busy", after="10m")

    await discard.enqueue()
    await retry.enqueue()
    assert [one.state for one in await run_all(app)] == [JobState.FAILED, JobState.SCHEDULED]
    clock.advance(minutes=9)
    assert await run_all(app) == []
    clock.advance(minutes=1)
    assert len(await run_all(app)) == 1


async def test_timeouts_are_kept_in_real_time(app: Windlass) -> None:
    @app.task(timeout="100ms", max_attempts=2)
    async def hang() -> None:
        await asyncio.sleep(60)

    await hang.enqueue()
    started = time.monotonic()
    with pytest.raises(JobFailed, match="timed out"):
        await run_all(app, raise_errors=True)
    assert time.monotonic() - started < 5
    [ran] = await run_all(app, retries=True)
    assert (ran.reason, ran.error) == (RunReason.TIMED_OUT, None)


async def test_delays_and_cadences_come_due_with_the_clock(app: Windlass, clock: FakeClock) -> None:
    @app.task
    async def tick() -> None: ...

    await tick.using(delay="1h").enqueue()
    await app.enqueue_jobs([NewJob(task="tick", recurrence=Recurrence(cadence=Every(timedelta(hours=2))))])
    assert await run_all(app) == []
    clock.advance(hours=1)
    assert len(await run_all(app)) == 1
    for _ in range(3):
        clock.advance(hours=2)
        assert len(await run_all(app)) == 1


async def test_a_template_spawns_when_it_is_due(app: Windlass, clock: FakeClock) -> None:
    @app.task
    async def crawl() -> None: ...

    await app.enqueue_jobs([NewJob(task="crawl", recurrence=Recurrence(cadence=Every(timedelta(hours=1))), spawn=True)])
    clock.advance(hours=1)
    [ran] = await run_all(app)
    assert ran.task == "crawl"


async def test_a_handler_may_move_the_clock(app: Windlass, clock: FakeClock) -> None:
    @app.task
    async def slow() -> None:
        clock.advance(hours=1)

    job = await slow.enqueue()
    [ran] = await run_all(app)
    assert ran.state is JobState.COMPLETED
    assert (await app.executions(job))[0].duration_ms == 3_600_000


async def test_a_lease_that_ended_is_taken_back(app: Windlass, clock: FakeClock) -> None:
    from windlass.core.job import Lease  # noqa: PLC0415 - what only a dead worker needs

    @app.task
    async def email() -> None: ...

    await email.enqueue()
    store = await app.store()
    await store.claim(await store.slices(), 1, Lease(7, "dead", timedelta(seconds=20)))
    assert await run_all(app) == []
    clock.advance(minutes=1)
    await run_all(app)
    assert enqueued(app)[0].executions >= 1


async def test_the_lifespan_is_opened_for_handlers(app: Windlass) -> None:
    happened: list[str] = []

    @app.lifespan
    async def resources() -> AsyncIterator[dict[str, str]]:
        happened.append("open")
        yield {"mailer": "real"}
        happened.append("close")

    @app.task
    async def email(ctx: JobContext) -> str:
        happened.append("run")
        return str(ctx.state["mailer"])

    await email.enqueue()
    assert [ran.result for ran in await run_all(app)] == ["real"]
    assert happened == ["open", "run", "close"]
    await email.enqueue()
    assert [ran.result for ran in await run_all(app, state={"mailer": "fake"})] == ["fake"]
    assert happened.count("open") == 1


async def test_the_context_works(app: Windlass) -> None:
    @app.task
    async def crawl(ctx: JobContext) -> None:
        await ctx.progress(3, cursor="c3")

    @app.task
    def scrape(ctx: JobContext) -> None:
        ctx.progress_sync(4)

    jobs = [await crawl.enqueue(), await scrape.enqueue()]
    await run_all(app, raise_errors=True)
    assert [(await app.get(job)).progress_count for job in jobs] == [3, 4]


async def test_hooks_are_told(app: Windlass) -> None:
    heard: list[str] = []
    for happening in ("start", "finish", "fail"):
        app.on(happening)(lambda _, happening=happening: heard.append(happening))

    @app.task(max_attempts=1)
    async def maybe(good: bool) -> None:  # noqa: FBT001 - arguments travel by name
        if not good:
            raise ValueError

    await maybe.enqueue(good=True)
    await maybe.enqueue(good=False)
    await run_all(app)
    assert heard == ["start", "finish", "start", "fail"]


async def test_an_open_breaker_holds_its_task_back(app: Windlass, clock: FakeClock) -> None:
    from windlass import BreakerSpec  # noqa: PLC0415 - as a user writes it

    is_down = True

    @app.task(breaker=BreakerSpec("mail", 2, timedelta(minutes=1)), max_attempts=9)
    async def email(number: int) -> None:  # noqa: ARG001 - makes the jobs differ
        if is_down:
            raise OSError("down")

    await email.enqueue_many([{"number": number} for number in range(4)])
    assert [ran.arguments["number"] for ran in await run_all(app)] == [0, 1]
    assert await run_all(app, retries=True) == []
    clock.advance(minutes=2)
    is_down = False
    assert len(await run_all(app)) == 4


async def test_a_paused_lane_and_jobs_without_code_are_left_alone(app: Windlass) -> None:
    @app.task(lane="mail")
    async def email() -> None: ...

    await email.enqueue()
    await app.enqueue("elsewhere", lane="pull")
    await app.enqueue_jobs([NewJob(task="unknown")])
    await (await app.store()).lanes.pause("mail")
    assert await run_all(app) == []


async def test_a_job_cancelled_by_its_own_handler_is_told_as_cancelled(app: Windlass) -> None:
    @app.task
    async def regret(ctx: JobContext) -> None:
        await app.cancel(ctx.job_id)

    await regret.enqueue()
    [ran] = await run_all(app)
    assert ran.state is JobState.CANCELLED


async def test_a_job_that_enqueues_itself_for_ever_is_stopped(app: Windlass) -> None:
    @app.task
    async def loop() -> None:
        await loop.enqueue()

    await loop.enqueue()
    with pytest.raises(WindlassError, match=r"20 jobs have run.* more are due \(loop\)"):
        await run_all(app, at_most=20)


async def test_exactly_as_many_runs_as_allowed_are_no_error(app: Windlass) -> None:
    @app.task
    async def email() -> None: ...

    await email.enqueue_many([{}, {}])
    assert len(await run_all(app, at_most=2)) == 2


async def test_a_database_that_cannot_be_reached_is_an_error_and_no_wait() -> None:
    app = Windlass(NOWHERE)
    with pytest.raises(StoreError):
        await run_all(app)


async def test_a_database_that_goes_away_is_an_error_and_no_wait() -> None:
    app = Windlass(NOWHERE)

    @app.task
    async def close() -> None:
        await app.aclose()

    async with fresh(app):
        await close.enqueue()
        with pytest.raises(StoreError):
            await run_all(app)


async def test_a_run_that_is_cancelled_ends_its_worker(app: Windlass) -> None:
    @app.task
    async def hang() -> None:
        await asyncio.sleep(60)

    await hang.enqueue()
    before = threading.enumerate()
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await run_all(app)
    assert time.monotonic() - started < 5
    # The store of the application stays open, and asyncio keeps the threads of its own pool for as long as the loop lives.
    stays = ("asyncio_", "windlass-announcer")
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.name.startswith(stays)]
    for thread in left:
        # One that was just asked to end needs the processor once more.
        await asyncio.to_thread(thread.join, 5)
    assert [thread.name for thread in left if thread.is_alive()] == []


async def test_an_application_on_real_time_runs_as_well(tmp_path: Any) -> None:
    async with Windlass(f"sqlite:///{tmp_path}/jobs.db") as app:

        @app.task
        async def email() -> None: ...

        await email.enqueue()
        assert len(await run_all(app)) == 1


@pytest.mark.parametrize("url", ["sqlite://", "postgres"])
async def test_a_declared_schedule_runs_when_the_clock_has_come_to_its_time(url: str, request: pytest.FixtureRequest) -> None:
    app, clock = Windlass(name="nightly-tests"), FakeClock(datetime(2026, 1, 15, 10, 30, tzinfo=UTC))

    @app.task(cron="0 3 * * *")
    def nightly() -> None: ...

    async with fresh(app, request.getfixturevalue("postgres_dsn") if url == "postgres" else url, clock=clock):
        assert await run_all(app) == []
        clock.move_to(datetime(2026, 1, 16, 2, 59, tzinfo=UTC))
        assert await run_all(app) == []
        clock.advance(minutes=1)
        assert [ran.task for ran in await run_all(app)] == [nightly.name]
        assert await run_all(app) == []
    # A test that looks for the first time when the time has come sees it too.
    clock = FakeClock(datetime(2026, 1, 15, 10, 30, tzinfo=UTC))
    async with fresh(app, clock=clock):
        clock.advance(days=1)
        assert [ran.task for ran in await run_all(app)] == [nightly.name]
