"""The examples of the async jobs system, quoted as data."""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from typing import Any

import psycopg
import pytest

from tests.client.test_operations import start_next
from windlass import BreakerOpen, InvalidInput, InvalidPayload, Windlass
from windlass.compat import aio, jobs, patterns, rows
from windlass.core.ids import job_uuid
from windlass.core.job import NewJob
from windlass.store.sqlite_library import sqlite_driver as driver


async def test_a_basic_job(app: Windlass) -> None:
    number = jobs.enqueue_job(app, "email", {"to": "user@example.com", "template": "welcome"})
    job = await app.get(number)
    assert (job.lane, job.priority, job.state, job.payload_json) == (
        "fast",
        0,
        "pending",
        '{"to":"user@example.com","template":"welcome"}',
    )


async def test_options(app: Windlass) -> None:
    at = datetime.now(UTC) + timedelta(minutes=5)
    opts = {"priority": 50, "run-at": at, "correlation-id": "user-action-123", "dedup-key": "analysis-12345"}
    number = jobs.enqueue_job(app, "analysis", {"lipas-id": 12345}, opts)
    shown = rows.job_row(await app.get(number))
    assert (shown.priority, shown.correlation_id, shown.dedup_key, shown.status) == (
        50,
        "user-action-123",
        "analysis-12345",
        "pending",
    )
    assert (shown.scheduled_at, shown.error_message, shown.max_attempts) == (shown.run_at, None, 3)
    assert (abs(shown.run_at - at) < timedelta(milliseconds=1), (await app.get(number)).lane) == (True, "slow")
    assert await aio.enqueue_job(app, "analysis", {"lipas-id": 12345}, opts) == number


async def test_a_registered_task_keeps_its_own_lane(app: Windlass, url: str) -> None:
    other = Windlass(url)

    @other.task(name="email", lane="mails", max_attempts=8, timeout="90s", priority=7)
    async def send(to: str) -> None: ...

    async with other, other.working():
        pass
    here = await other.get(jobs.enqueue_job(other, "email", {"to": "a"}))
    elsewhere = await app.get(await aio.enqueue_job(app, "email", {"to": "a"}))
    for job in (here, elsewhere):
        assert (job.lane, job.max_attempts, job.timeout_us, job.priority) == ("mails", 8, 90_000_000, 7)
    assert (await app.get(jobs.enqueue_job(app, "webhook", {}))).lane == "fast"
    with pytest.raises(InvalidPayload, match="to: must be string"):
        jobs.enqueue_job(app, "email", {"to": 5})


async def test_a_job_belongs_to_the_callers_transaction(app: Windlass, url: str) -> None:
    await app.store()
    if url.startswith("sqlite"):
        connection: Any = driver.connect(url.removeprefix("sqlite:///"))
        begin = "begin immediate"
    else:
        connection, begin = psycopg.connect(url), "select 1"
    with closing(connection):
        connection.execute(begin)
        jobs.enqueue_job(app, "email", {}, {"connection": connection})
        connection.rollback()
        connection.execute(begin)
        number = jobs.enqueue_job(app, "email", {}, {"connection": connection})
        connection.commit()
    assert [job.id for job in (await app.list()).jobs] == [number]


async def test_rerun_runs_a_running_job_once_more(app: Windlass) -> None:
    opts = {"dedup-key": "one", "rerun": True}
    number = jobs.enqueue_job(app, "analysis", {}, opts)
    assert await start_next(app) == number
    assert jobs.enqueue_job(app, "analysis", {}, opts) == number
    assert (await app.get(number)).rerun_at is not None


async def test_a_lower_number_runs_first(app: Windlass) -> None:
    usual = jobs.enqueue_job(app, "email", {})
    late = jobs.enqueue_job(app, "email", {}, {"priority": 250})
    early = jobs.enqueue_job(app, "email", {}, {"priority": 10})
    assert [await start_next(app) for _ in range(3)] == [early, usual, late]


@pytest.mark.parametrize("opts", [{"priority": -1}, {"priority": "high"}, {"prio": 1}])
async def test_bad_options_are_named(app: Windlass, opts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="prio"):
        jobs.enqueue_job(app, "email", {}, opts)


async def test_queue_stats(app: Windlass) -> None:
    jobs.enqueue_job(app, "email", {})
    expected = {"pending": 1, "processing": 0, "failed": 0, "oldest_pending_minutes": 0}
    assert jobs.get_queue_stats(app) == await aio.get_queue_stats(app) == expected


async def test_jobs_are_failed_and_moved_to_the_dead_letters(app: Windlass) -> None:
    for _ in range(2):
        jobs.enqueue_job(app, "email", {})
    first, second = await start_next(app), await start_next(app)
    assert jobs.fail_job(app, first, "External service unavailable", {"will-retry?": True}).status == "failed"
    assert jobs.move_to_dead_letter(app, second, "Permanent validation error").status == "dead"
    [letter] = await app.dead_letters_of(second)
    seen = jobs.acknowledge_dead_letter(app, {"id": letter.id, "acknowledged_by": "admin@lipas.fi"})
    assert (seen.error_message, seen.acknowledged, seen.acknowledged_by) == (
        "Permanent validation error",
        True,
        "admin@lipas.fi",
    )
    assert jobs.get_dead_letters(app) == []


async def test_a_dead_job_is_enqueued_again_from_its_letter(app: Windlass) -> None:
    dead = jobs.enqueue_job(app, "email", {"to": "ann"}, {"correlation_id": "user-action-123", "priority": 40})
    jobs.move_to_dead_letter(app, dead, "no")
    [letter] = jobs.get_dead_letters(app)
    assert letter == await aio.get_dead_letter(app, letter.id)
    original = jobs.get_dead_letter(app, letter.id).original_job
    assert original["priority"] == 40
    again = jobs.enqueue_job(app, original["type"], original["payload"], {"correlation-id": original["correlation_id"]})
    assert [job.id for job in jobs.get_jobs_by_correlation(app, "user-action-123")] == [dead, again]


async def test_jobs_are_found_by_correlation(app: Windlass) -> None:
    number = jobs.enqueue_job(app, "email", {}, {"correlation_id": "user-action-123"})
    assert [job.id for job in jobs.get_jobs_by_correlation(app, "user-action-123")] == [number]


async def test_a_correlation_of_more_jobs_than_a_page_is_read_whole(app: Windlass) -> None:
    made = await app.enqueue_jobs(NewJob(task="email", correlation_id="user-action-123") for _ in range(1203))
    found = jobs.get_jobs_by_correlation(app, "user-action-123")
    assert [job.id for job in found] == [one.id for one in made]
    [parent] = await app.enqueue_jobs([NewJob(task="email")])
    children = await app.enqueue_jobs(NewJob(task="email", parent_id=parent.id) for _ in range(700))
    assert len(await aio.get_jobs_by_correlation(app, str(job_uuid(parent.id)))) == 1 + len(children)


async def test_a_dead_letter_of_a_job_without_a_correlation_id_shows_its_own_uuid(app: Windlass) -> None:
    number = jobs.enqueue_job(app, "email", {})
    jobs.move_to_dead_letter(app, number, "no")
    [letter] = jobs.get_dead_letters(app)
    assert letter.original_job["correlation_id"] == jobs.get_jobs_by_correlation(app, str(job_uuid(number)))[0].correlation_id
    assert letter.original_job["correlation_id"] == str(job_uuid(number))


async def test_a_breaker_counts_how_async_work_ends(app: Windlass) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError("away")

    async def five() -> int:
        return 5

    opts = {"failure-threshold": 2}
    assert await patterns.with_circuit_breaker(app, "email-service", opts, five) == 5
    for work in (fail, lambda: fail()):  # noqa: PLW0108 - a function that returns an awaitable is the point
        with pytest.raises(OSError, match="away"):
            await patterns.with_circuit_breaker(app, "email-service", opts, work)
    with pytest.raises(BreakerOpen):
        await patterns.with_circuit_breaker(app, "email-service", opts, five)


async def test_async_work_is_cancelled_when_its_time_is_over() -> None:
    cancelled = asyncio.Event()

    async def sleep() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def five() -> int:
        return 5

    async def raise_timeout() -> None:
        raise TimeoutError("mine")

    assert await patterns.with_timeout(5000, five) == 5
    for work in (sleep, lambda: sleep()):  # noqa: PLW0108 - as above
        cancelled.clear()
        with pytest.raises(TimeoutError, match="not done after 20 ms") as late:
            await patterns.with_timeout(20, work)
        assert "".join(traceback.format_exception(late.value)).count("Traceback") == 1
        assert cancelled.is_set()
    with pytest.raises(TimeoutError, match="mine"):
        await patterns.with_timeout(5000, raise_timeout)


async def test_work_with_a_timeout_belongs_to_its_job(app: Windlass) -> None:
    @app.task
    async def child() -> None: ...

    @app.task
    def in_thread() -> int:
        return patterns.with_timeout(5000, lambda: child.enqueue_sync().id)

    @app.task
    async def in_loop() -> int:
        async def work() -> int:
            return (await child.enqueue()).id

        return await patterns.with_timeout(5000, work)

    async with app.working():
        for task in (in_thread, in_loop):
            parent = await task.enqueue()
            made = await app.get(await app.wait(parent, timeout=20))
            assert (made.parent_id, made.correlation_id) == (parent.id, str(job_uuid(parent.id)))


async def test_log_lines_of_work_with_a_timeout_are_kept_with_the_run(app: Windlass) -> None:
    @app.task
    def talks() -> None:
        patterns.with_timeout(5000, lambda: logging.getLogger("app").warning("from inside"))

    async with app.working():
        job = await talks.enqueue()
        await app.wait(job, timeout=20)
    [run] = await app.executions(job)
    assert "from inside" in (run.log_excerpt or "")


async def test_circuit_breakers(app: Windlass) -> None:
    def fail() -> None:
        raise OSError("away")

    opts = {"failure-threshold": 1, "open-duration-ms": 60000}
    with pytest.raises(OSError, match="away"):
        patterns.with_circuit_breaker(app, "email-service", opts, fail)
    with pytest.raises(BreakerOpen):
        patterns.with_circuit_breaker(app, "email-service", opts, fail)
    jobs.reset_circuit_breaker(app, "email-service")
    assert patterns.with_circuit_breaker(app, "email-service", {}, lambda: 5) == 5
    for state in ("open", "closed"):
        changed = jobs.update_circuit_breaker(app, {"service_name": "external-api", "state": state})
        assert changed is not None
        assert changed.state == state
    with pytest.raises(InvalidInput, match="open or closed"):
        jobs.update_circuit_breaker(app, {"service_name": "external-api", "state": "ajar"})
    with pytest.raises(InvalidInput, match="use open or closed"):
        jobs.update_circuit_breaker(app, {"service_name": "external-api", "state": "ajar"})


def test_exponential_backoff() -> None:
    rng = Random(3)
    for attempt, middle in ((1, 1000), (2, 2000), (3, 4000), (99, 300_000)):
        assert abs(patterns.exponential_backoff_ms(1000, attempt, 0.1, rng=rng) - middle) <= middle * 0.1
    assert patterns.exponential_backoff_ms(1000, 3, 0.0) == 4000


def test_timeouts() -> None:
    def raise_timeout() -> None:
        raise TimeoutError("mine")

    assert patterns.with_timeout(5000, lambda: 3) == 3
    with pytest.raises(TimeoutError, match="not done after 20 ms") as late:
        patterns.with_timeout(20, Event().wait)
    assert "".join(traceback.format_exception(late.value)).count("Traceback") == 1
    with pytest.raises(TimeoutError, match="mine"):
        patterns.with_timeout(5000, raise_timeout)
