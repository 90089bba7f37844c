"""Schedules as applications make them: declared with a task, made by a call, ensured, switched in the caller's transaction."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres
from windlass import InvalidInput, InvalidPayload, Job, JobContext, JobState, ScheduleTaken, UnknownTask, Windlass
from windlass.core.cadence import ByHandler, Cron, Every, Misfire, Overlap, Recurrence
from windlass.store.sqlite_library import sqlite_driver as driver

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def until(app: Windlass, name: str, runs: int) -> Job:
    """Wait until a schedule has completed so many runs."""
    async with asyncio.timeout(20):
        while (job := await app.schedules.get(name)).completed_runs < runs:  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.02)
    return job


async def test_a_declared_schedule_appears_when_a_worker_starts(app: Windlass) -> None:
    @app.task(every="30m", jitter="10s")
    def sweep(depth: int = 3) -> None: ...

    @app.task(cron="0 3 * * mon-fri", timezone="Europe/Helsinki", misfire="skip", schedule_payload={"to": "ada"})
    async def report(to: str) -> None: ...

    @app.task(cadence="@handler 1h", spawn=False, lane="slow", priority=4, max_attempts=7)
    def poll() -> None: ...

    @app.task
    def plain() -> None: ...

    async with app.working():
        swept, reported, polled = [await app.schedules.get(name) for name in ("sweep", "report", "poll")]
    assert swept.recurrence == Recurrence(cadence=Every(30 * MINUTE), jitter=timedelta(seconds=10))
    assert reported.recurrence == Recurrence(cadence=Cron("0 3 * * mon-fri"), timezone="Europe/Helsinki", misfire=Misfire.SKIP)
    assert (reported.payload_json, reported.declared_by, reported.run_at.astimezone(UTC).minute) == ('{"to":"ada"}', "app", 0)
    assert (polled.lane, polled.priority, polled.max_attempts) == ("slow", 4, 7)
    assert len((await app.list()).jobs) == 3


async def test_a_declared_schedule_runs_again_and_again(app: Windlass) -> None:
    @app.task(every="1s", fixed_rate=True, start_at=datetime(2026, 1, 1, tzinfo=UTC))
    async def tick() -> None: ...

    async with app.working():
        job = await until(app, "tick", 2)
    slots = [run.slot_at for run in await app.executions(job) if run.slot_at is not None]
    assert len(slots) == len(set(slots))
    assert {slot.microsecond for slot in slots} == {0}


async def test_a_declared_template_spawns(app: Windlass) -> None:
    ran = asyncio.Event()

    @app.task(every="1s", spawn=True, overlap="skip")
    async def crawl() -> None:
        ran.set()

    async with app.working():
        async with asyncio.timeout(20):
            await ran.wait()
        template = await app.schedules.get("crawl")
    assert template.recurrence is not None
    assert (template.spawn, template.recurrence.overlap) == (True, Overlap.SKIP)


async def test_an_operators_pause_survives_a_restart(app: Windlass) -> None:
    @app.task(every="30m")
    def sweep() -> None: ...

    async with app.working():
        await app.pause(await app.schedules.get("sweep"))
    async with app.working():
        assert (await app.schedules.get("sweep")).state is JobState.PAUSED


async def test_two_applications_keep_to_their_own_schedules(url: str) -> None:
    async with Windlass(url, name="shop") as shop, Windlass(url, name="blog") as blog:
        for app, names in ((shop, ("stock", "prices")), (blog, ("feeds",))):
            for name in names:
                app.task(every="30m", name=name)(lambda: None)
            async with app.working():
                pass
        smaller = Windlass(url, name="shop")
        smaller.task(every="30m", name="stock")(lambda: None)
        async with smaller:
            async with smaller.working():
                assert (await smaller.schedules.get("prices")).is_enabled
            # At once, whatever the code that runs now does not declare.
            pruned = await smaller.schedules.prune_declared("shop", timedelta(), smaller.declared)
            assert [job.name for job in pruned.changed] == ["prices"]
        assert (await blog.schedules.get("feeds")).is_enabled
        blog.task(every="1h", name="stock")(lambda: None)
        with pytest.raises(ScheduleTaken, match="'stock' is declared by application 'shop'"):
            async with blog.working():
                pass


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"every": "soon"}, "every"),
        ({"every": "500ms"}, "cadence"),
        ({"cron": "61 * * * *"}, "cadence"),
        ({"cron": "@dayly"}, "cadence"),
        ({"cadence": 5}, "cadence"),
        ({"cron": "@daily", "timezone": "Europe/Bonn"}, "timezone"),
        ({"every": "5m", "cron": "@daily"}, "cron"),
        ({"timezone": "Europe/Berlin"}, "timezone"),
        ({"schedule_payload": {"n": 1}}, "schedule_payload"),
        ({"every": "5m", "misfire": "never"}, "misfire"),
        ({"every": "5m", "overlap": "skip"}, "overlap"),
        ({"every": "5m", "spawn": True, "overlap": "queue"}, "overlap"),
        ({"every": "5m", "jitter": "-1s"}, "jitter"),
        ({"every": "5m", "start_at": datetime(2026, 1, 1)}, "start_at"),  # noqa: DTZ001 - that is what is wrong
    ],
)
def test_a_schedule_that_cannot_work_is_refused_where_it_is_declared(options: dict[str, Any], field: str) -> None:
    app = Windlass("sqlite:///:memory:")
    with pytest.raises(InvalidInput) as caught:
        app.task(name="t", **options)(lambda: None)
    assert caught.value.field == field
    assert app.tasks == {}


def test_a_schedule_whose_arguments_are_missing_is_refused_where_it_is_declared() -> None:
    app = Windlass("sqlite:///:memory:")

    def report(to: str) -> None: ...

    with pytest.raises(InvalidPayload, match="to"):
        app.task(every="30m")(report)


async def test_a_schedule_is_made_and_changed_by_a_call(app: Windlass) -> None:
    @app.task
    def sweep(depth: int = 1) -> None: ...

    made = await app.recurring("nightly", sweep, "0 3 * * *", {"depth": 5}, timezone="Europe/Berlin", subject="s", priority=3)
    assert (made.name, made.task, made.payload_json, made.subject, made.priority) == ("nightly", "sweep", '{"depth":5}', "s", 3)
    again = await asyncio.to_thread(
        app.recurring_sync, "nightly", "sweep", "0 3 * * *", {"depth": 6}, timezone="Europe/Berlin", subject="s", priority=3
    )
    assert (again.id, again.payload_json, again.run_at) == (made.id, '{"depth":6}', made.run_at)
    moved = await app.recurring("nightly", sweep, HOUR, fixed_rate=True)
    assert moved.recurrence == Recurrence(cadence=Every(HOUR), fixed_rate=True)
    rule = Recurrence(cadence=Cron("@daily"), misfire=Misfire.ALL)
    assert (await app.recurring("nightly", sweep, rule)).recurrence == rule
    with pytest.raises(InvalidInput, match="has its own jitter"):
        await app.recurring("nightly", sweep, rule, jitter=5)


async def test_a_schedule_of_a_task_nobody_knows_is_refused(app: Windlass) -> None:
    with pytest.raises(UnknownTask):
        await app.recurring("nightly", "nobody", "@daily")
    with pytest.raises(InvalidInput, match="is not an option"):
        await app.recurring("nightly", "nobody", "@daily", colour="red")  # type: ignore[call-arg]
    assert (await app.list()).jobs == ()


async def test_what_makes_jobs_unique_is_left_to_a_templates_children(app: Windlass) -> None:
    @app.task(unique=["feed"])
    def fetch(feed: int) -> None: ...

    plain = await app.recurring("plain", fetch, "@daily", {"feed": 1})
    template = await app.recurring("template", fetch, "@daily", {"feed": 1}, spawn=True)
    assert (plain.unique_key, plain.child_key, template.unique_key, template.child_key) == (None, None, None, "[1]")
    assert not (await fetch.enqueue(1)).is_duplicate


async def test_ensure_is_the_seeds_create_feed_job(app: Windlass) -> None:
    @app.task
    def fetch_feed(feed_id: str) -> None: ...

    made = await app.ensure("feed:7", fetch_feed, {"feed_id": "7"}, subject="7")
    assert made.recurrence == Recurrence(cadence=ByHandler())
    assert made.state is JobState.PENDING
    await app.schedules.disable("feed:7")
    assert not (await app.schedules.get("feed:7")).is_enabled
    again = await asyncio.to_thread(app.ensure_sync, "feed:7", fetch_feed, {"feed_id": "7"}, subject="7")
    assert (again.id, again.is_enabled, again.run_at) == (made.id, True, made.run_at)
    await app.cancel(made)
    assert (await app.ensure("feed:7", fetch_feed, {"feed_id": "7"}, subject="7")).id == made.id


async def test_a_handler_chooses_when_it_runs_next_and_failures_back_off(app: Windlass) -> None:
    seen: list[int] = []

    @app.task(retry={"base": "50ms", "jitter": 0.0})
    async def fetch_feed(ctx: JobContext) -> None:
        seen.append(ctx.consecutive_failures)
        if len(seen) <= 2:
            raise RuntimeError("the feed is down")
        ctx.run_again(after="6h")

    await app.ensure("feed", fetch_feed)
    async with app.working():
        job = await until(app, "feed", 1)
    assert seen == [0, 1, 2]
    assert (job.state, job.consecutive_failures) == (JobState.SCHEDULED, 0)
    assert timedelta(hours=5) < job.run_at - job.updated_at <= timedelta(hours=6)


async def test_racing_ensures_of_twenty_tasks_make_one_job(app: Windlass) -> None:
    @app.task
    def fetch_feed() -> None: ...

    jobs = await asyncio.gather(*(app.ensure("feed", fetch_feed) for _ in range(20)))
    assert len({job.id for job in jobs}) == 1


SUBSCRIBERS = "create table subscriptions (feed integer)"
ANY = "select exists (select 1 from subscriptions)"


async def test_sync_enabled_belongs_to_a_sqlite_transaction(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with Windlass(f"sqlite:///{path}") as app:
        app.task(name="fetch")(lambda: None)
        await app.ensure("feed", "fetch")
        with closing(driver.connect(path)) as connection:
            connection.execute(SUBSCRIBERS)
            connection.execute("insert into subscriptions values (1)")
            connection.commit()
            connection.execute("delete from subscriptions")
            left = await app.sync_enabled("feed", lambda same: same.execute(ANY).fetchone()[0], connection)
            assert not left.is_enabled
            connection.rollback()
            assert (await app.schedules.get("feed")).is_enabled
            connection.execute("delete from subscriptions")
            app.sync_enabled_sync("feed", lambda same: same.execute(ANY).fetchone()[0], connection)
            connection.commit()
        assert not (await app.schedules.get("feed")).is_enabled


async def test_sync_enabled_belongs_to_a_psycopg_transaction(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        async with Windlass(dsn) as app:
            app.task(name="fetch")(lambda: None)
            await app.ensure("feed", "fetch")
            with psycopg.connect(dsn) as connection:
                connection.execute(SUBSCRIBERS)
                connection.commit()
                ask = lambda same: same.execute(ANY).fetchone()[0]  # noqa: E731 - a predicate as people write it
                assert not app.sync_enabled_sync("feed", ask, connection).is_enabled
                connection.rollback()
                assert (await app.schedules.get("feed")).is_enabled
            async with await psycopg.AsyncConnection.connect(dsn) as later:
                await later.execute("insert into subscriptions values (1)")

                async def any_left(same: Any) -> Any:
                    return (await (await same.execute(ANY)).fetchone())[0]

                assert (await app.sync_enabled("feed", any_left, later)).is_enabled
                await later.execute("delete from subscriptions")
                assert not (await app.sync_enabled("feed", any_left, later)).is_enabled


async def test_sync_enabled_without_a_connection_asks_through_its_own(app: Windlass) -> None:
    app.task(name="fetch")(lambda: None)
    await app.ensure("feed", "fetch")

    def nobody(same: Any) -> Any:
        return same.execute("select 0").fetchone()[0]

    assert not (await asyncio.to_thread(app.sync_enabled_sync, "feed", nobody)).is_enabled
    assert (await app.sync_enabled("feed", lambda _: True)).is_enabled


async def test_nothing_can_be_awaited_inside_a_blocking_transaction(app: Windlass) -> None:
    app.task(name="fetch")(lambda: None)
    await app.ensure("feed", "fetch")

    async def asked(_: object) -> bool:
        return True

    with pytest.raises(InvalidInput, match="must be a plain function here"):
        await asyncio.to_thread(app.sync_enabled_sync, "feed", asked)


async def test_ensure_in_a_callers_transaction_is_there_if_that_commits(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with Windlass(f"sqlite:///{path}") as app:
        app.task(name="fetch")(lambda: None)
        await app.counts()
        with closing(driver.connect(path)) as connection:
            await app.ensure("feed", "fetch", connection=connection)
            connection.rollback()
            assert (await app.list()).jobs == ()
            await app.recurring("nightly", "fetch", "@daily", connection=connection)
            connection.commit()
        assert [job.name for job in (await app.list()).jobs] == ["nightly"]
