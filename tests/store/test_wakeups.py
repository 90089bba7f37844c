"""Wake-ups: who is told what, nothing is missed between looking and sleeping, and silence is noticed."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from tests.store.builders import a_job, claim, end, enqueue_one, fail_for_good, failure, recurring, running
from tests.support.stores import fresh_url
from windlass.core.audit import Actor
from windlass.core.blocking import run
from windlass.core.job import Edit, NewJob
from windlass.core.outcome import Released
from windlass.core.topic import EVERYTHING, Topic
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store import Store, announcer, listener, open_blocking_store, open_store
from windlass.store.announcer import Announcer
from windlass.store.listener import Hear, WakeupListener
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite
from windlass.store.sqlite_library import sqlite_driver as driver
from windlass.store.wakeups import Pace, SqlWakeups
from windlass.testing import FakeClock

LONG = timedelta(seconds=30)
"""Far longer than a wake-up takes: only a wake-up ends such a wait early."""
MOMENT = timedelta(milliseconds=50)
ALL = set(Topic)


@asynccontextmanager
async def listening(store: Store) -> AsyncIterator[SqlWakeups]:
    """Listen, and wait until it works and what was before has been heard."""
    before = store.wakeups.generation()
    async with store.wakeups as wakeups:
        await wakeups.wait(before, at_most=LONG)
        assert wakeups.is_listening
        # On a file the first look at it wakes everything once more.
        while await wakeups.wait(wakeups.generation(), at_most=MOMENT):
            pass
        yield wakeups


async def told_by(store: Store, act: Callable[[], Awaitable[Any]]) -> set[Topic]:
    """Give the topics that an act wakes."""
    heard: set[Topic] = set()
    async with listening(store) as wakeups:
        wakeups.subscribe(heard.add)
        noted = wakeups.generation()
        await act()
        await wakeups.wait(noted, at_most=LONG)
        # Topics of one commit come together, but may be two announcements when the first is under way.
        while await wakeups.wait(wakeups.generation(), at_most=MOMENT):
            pass
    return heard


async def is_silent(store: Store, act: Callable[[], Awaitable[Any]]) -> bool:
    """Say whether an act wakes nobody."""
    async with listening(store) as wakeups:
        noted = wakeups.generation()
        await act()
        return not await wakeups.wait(noted, at_most=4 * MOMENT)


HOUR = timedelta(hours=1)
NEW_JOBS: dict[str, tuple[NewJob, set[Topic]]] = {
    "at once": (a_job(), {Topic.WORK}),
    "no delay": (a_job(delay=timedelta()), {Topic.WORK}),
    "later": (a_job(delay=HOUR), {Topic.DUE}),
    "recurring": (a_job(recurrence=recurring()), {Topic.WORK, Topic.DUE}),
}


@pytest.mark.parametrize("kind", NEW_JOBS)
async def test_enqueue_wakes_those_who_claim_or_those_who_wait_for_a_time(store: Store, kind: str) -> None:
    job, topics = NEW_JOBS[kind]
    assert await told_by(store, lambda: store.enqueue([job])) == topics


async def test_enqueue_of_a_job_that_is_there_wakes_nobody(store: Store) -> None:
    await enqueue_one(store, a_job(unique_key="k"))
    assert await is_silent(store, lambda: store.enqueue([a_job(unique_key="k")]))


async def test_enqueue_that_replaces_a_waiting_job_wakes(store: Store) -> None:
    await enqueue_one(store, a_job(unique_key="k", delay=HOUR))
    replacing = a_job(unique_key="k", on_conflict="replace")
    assert await told_by(store, lambda: store.enqueue([replacing])) == {Topic.WORK}


async def test_promote_wakes_those_who_claim_only_if_something_was_due(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(delay=HOUR))
    assert await is_silent(store, store.promote)
    clock.advance(hours=2)
    assert await told_by(store, store.promote) == {Topic.WORK}


async def test_spawn_wakes_those_who_claim(store: Store) -> None:
    await enqueue_one(store, a_job(recurrence=recurring(), spawn=True, delay=timedelta()))
    assert await told_by(store, store.spawn) == {Topic.WORK}


async def test_success_wakes_nobody_and_neither_does_claiming_or_renewing(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store)

    async def act() -> None:
        [job] = await claim(store)
        await store.renew([(job.id, job.token, None)], LONG)
        assert await end(store, clock, job)

    assert await is_silent(store, act)


@pytest.mark.parametrize("outcome", [failure(), Released()])
async def test_job_that_comes_back_wakes_those_who_wait_for_a_time(store: Store, clock: FakeClock, outcome: Any) -> None:
    job = await running(store, a_job(max_attempts=5))
    assert await told_by(store, lambda: end(store, clock, job, outcome)) == {Topic.DUE}


async def test_reclaim_wakes_those_who_promote_and_the_late_holder(store: Store, clock: FakeClock) -> None:
    await running(store)
    clock.advance(hours=1)
    assert await told_by(store, store.reclaim) == {Topic.DUE, Topic.CONTROL}
    assert await is_silent(store, store.reclaim)


async def test_operators_wake_the_worker_of_a_running_job(store: Store) -> None:
    job = await running(store, a_job(recurrence=recurring(), delay=timedelta()))
    assert await told_by(store, lambda: store.stop_run([job.id])) == {Topic.CONTROL}
    assert await told_by(store, lambda: store.cancel([job.id])) == {Topic.CONTROL}


async def test_cancel_of_a_waiting_job_wakes_nobody(store: Store) -> None:
    waiting = await enqueue_one(store)
    assert await is_silent(store, lambda: store.cancel([waiting]))


async def test_operators_wake_those_who_can_go_on_with_a_waiting_job(store: Store, clock: FakeClock) -> None:
    later = await enqueue_one(store, a_job(recurrence=recurring()))
    assert await told_by(store, lambda: store.edit(later, Edit(priority=3))) == {Topic.DUE}
    assert await is_silent(store, lambda: store.pause([later]))
    assert await told_by(store, lambda: store.resume([later])) == {Topic.DUE}
    assert await told_by(store, lambda: store.run_now([later])) == {Topic.WORK}
    failed = await fail_for_good(store, clock)
    assert await told_by(store, lambda: store.acting(Actor("ann")).retry([failed.id])) == {Topic.WORK}


async def test_wake_up_between_looking_and_sleeping_is_not_missed(store: Store) -> None:
    """Each job is enqueued at a random moment of note → look → sleep; were one missed, that turn would take half a minute."""
    rng = Random(5)
    found = 0

    async def enqueue_at_any_moment() -> None:
        for _ in range(100):
            await asyncio.sleep(rng.uniform(0, 0.004))
            await store.enqueue([a_job()])
            # The next one only when this one has been found: otherwise it would be found along with the next.
            while (await store.slices()).open:  # noqa: ASYNC110 - an event would be a wake-up of another kind
                await asyncio.sleep(0.001)

    async with listening(store) as wakeups, asyncio.TaskGroup() as tasks:
        enqueueing = tasks.create_task(enqueue_at_any_moment())
        while found < 100:
            noted = wakeups.generation(Topic.WORK)
            jobs = await claim(store)
            found += len(jobs)
            if not jobs:
                assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
        await enqueueing


async def test_wake_up_before_the_wait_ends_it_at_once(store: Store) -> None:
    async with listening(store) as wakeups:
        noted = wakeups.generation(Topic.WORK)
        await store.enqueue([a_job()])
        assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
        # Nobody slept when it came, and it is still there to be found.
        assert await wakeups.wait(noted, Topic.WORK, at_most=timedelta())
        assert not await wakeups.wait(wakeups.generation(Topic.WORK), Topic.WORK, at_most=MOMENT)


async def test_sleeper_is_woken_only_by_its_topics(store: Store) -> None:
    async with listening(store) as wakeups:
        noted_work, noted = wakeups.generation(Topic.WORK), wakeups.generation()
        await store.enqueue([a_job(delay=HOUR)])
        assert await wakeups.wait(noted, at_most=LONG)
        assert not await wakeups.wait(noted_work, Topic.WORK, at_most=timedelta())


async def test_who_enters_again_listens_along_until_the_last_leaves(store: Store) -> None:
    async with listening(store) as first:
        async with store.wakeups as second:
            assert second is first
        noted = first.generation()
        await enqueue_one(store)
        assert await first.wait(noted, at_most=LONG)
    assert not first.is_listening


async def test_error_inside_the_block_comes_out_as_it_is(store: Store) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with store.wakeups:
            raise KeyError("mine")
    assert not store.wakeups.is_listening


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Store]:
    store = open_store(url, rng=Random(1), **options)
    try:
        yield store
    finally:
        await store.aclose()


async def test_blocking_client_wakes_a_sleeper(url: str) -> None:
    client = open_blocking_store(url, rng=Random(2))
    async with opened(url) as store, listening(store) as wakeups:
        noted = wakeups.generation(Topic.WORK)
        await asyncio.to_thread(run, client.enqueue([a_job()]))
        assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
    await client.aclose()


async def test_script_that_ends_at_once_still_wakes_a_sleeper(url: str) -> None:
    script = (
        "import sys; from random import Random\n"
        "from windlass.core.blocking import run; from windlass.core.job import NewJob\n"
        "from windlass.store import open_blocking_store\n"
        "run(open_blocking_store(sys.argv[1], rng=Random(3)).enqueue([NewJob(task='work')]))"
    )
    async with opened(url) as store, listening(store) as wakeups:
        noted = wakeups.generation(Topic.WORK)
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, url], check=True)
        assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)


@pytest.mark.parametrize("fate", ["commit", "rollback"])
@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
async def test_callers_own_transaction_wakes_iff_it_commits(postgres_url: str, kind: str, fate: str) -> None:
    client = open_blocking_store(postgres_url, rng=Random(2))
    async with opened(postgres_url) as store, listening(store) as wakeups:
        noted = wakeups.generation(Topic.WORK)
        if kind == "asyncio":
            async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
                await store.enqueue_on(connection, [a_job()])
                assert not await wakeups.wait(noted, Topic.WORK, at_most=MOMENT)
                await (connection.commit() if fate == "commit" else connection.rollback())
        else:
            with psycopg.connect(postgres_url) as blocking:
                await client.enqueue_on(blocking, [a_job()])
                assert not await wakeups.wait(noted, Topic.WORK, at_most=MOMENT)
                blocking.commit() if fate == "commit" else blocking.rollback()
        patience = LONG if fate == "commit" else 4 * MOMENT
        assert await wakeups.wait(noted, Topic.WORK, at_most=patience) is (fate == "commit")
    await client.aclose()


async def test_callers_own_transaction_on_a_file_wakes_when_it_commits(tmp_path: Path) -> None:
    with fresh_url("sqlite-file", tmp_path, None) as url:
        connection = driver.connect(url.removeprefix("sqlite:///"))
        async with opened(url) as store, listening(store) as wakeups:
            noted = wakeups.generation(Topic.WORK)
            await store.enqueue_on(connection, [a_job()])
            assert not await wakeups.wait(noted, Topic.WORK, at_most=MOMENT)
            connection.commit()
            assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
        connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
async def test_commit_of_a_stranger_wakes_everything(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "strangers.db"
    stranger = driver.connect(str(path), isolation_level=None)
    stranger.execute(f"pragma journal_mode = {journal}")
    stranger.execute("create table others (x)")
    async with opened(f"sqlite:///{path}") as store:
        heard: set[Topic] = set()
        async with listening(store) as wakeups:
            wakeups.subscribe(heard.add)
            for turn in range(50):
                noted = wakeups.generation()
                stranger.execute("insert into others values (?)", [turn])
                assert await wakeups.wait(noted, at_most=LONG)
    stranger.close()
    assert heard == ALL


async def test_busy_stranger_wakes_those_who_claim_each_time_and_the_others_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    stranger = driver.connect(str(path), isolation_level=None)
    stranger.execute("pragma journal_mode = wal")
    stranger.execute("create table others (x)")
    heard: Counter[Topic] = Counter()
    async with opened(f"sqlite:///{path}") as store, listening(store) as wakeups:
        wakeups.subscribe(lambda topic: heard.update([topic]))
        began = time.monotonic()
        for turn in range(100):
            wakeups.credit()
            noted = wakeups.generation(Topic.WORK)
            stranger.execute("insert into others values (?)", [turn])
            assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
        assert heard[Topic.DUE] <= (time.monotonic() - began) / 0.1 + 2
        # Nobody is forgotten when the stranger falls silent.
        for turn in range(3):
            noted = wakeups.generation(Topic.CONTROL)
            stranger.execute("insert into others values (?)", [turn])
            assert await wakeups.wait(noted, Topic.CONTROL, at_most=LONG)
    stranger.close()


async def test_two_names_of_one_file_share_their_listeners(tmp_path: Path) -> None:
    with fresh_url("sqlite-file", tmp_path, None) as url:
        path = Path(url.removeprefix("sqlite:///"))
        link = tmp_path / "link.db"
        link.symlink_to(path)
        one, other, memory = (Sqlite(name, Random(1)) for name in (str(path), str(link), ":memory:"))
        try:
            assert one._listeners is other._listeners
            assert memory._listeners is not one._listeners
        finally:
            for database in (one, other, memory):
                database.close()


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with fresh_url("postgres", tmp_path, request.getfixturevalue("postgres_server")) as made:
        yield made


async def test_many_enqueues_make_few_announcements(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as ears, opened(postgres_url) as store:
        await ears.execute("listen windlass")
        started = time.monotonic()

        async def enqueue_in_turn() -> None:
            for _ in range(100):
                await store.enqueue([a_job()])

        await asyncio.gather(*(enqueue_in_turn() for _ in range(20)))
        seconds = time.monotonic() - started
        await asyncio.to_thread(store.database._announcer.close)  # type: ignore[attr-defined]
        words = [notice.payload async for notice in ears.notifies(timeout=0.5)]
    assert set(words) == {Topic.WORK}
    assert 1 <= len(words) <= seconds / announcer._SPACING_S + 2


async def test_a_lonely_enqueue_announces_itself_with_its_own_commit(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as ears, opened(postgres_url) as store:
        await ears.execute("listen windlass")
        await store.enqueue([a_job()])
        words = [notice.payload async for notice in ears.notifies(timeout=LONG.total_seconds(), stop_after=1)]
        assert isinstance(store.database, Postgres)
        assert store.database._announcer._thread is None
    assert words == [Topic.WORK]


def test_commits_announce_themselves_for_a_small_part_of_the_time() -> None:
    speaker = Announcer(lambda: pytest.fail("nothing is sent"))
    assert speaker.is_left_to_commit()
    # Nobody knows yet how long that one takes.
    assert not speaker.is_left_to_commit()
    speaker.committed(30.0)
    assert not speaker.is_left_to_commit()
    speaker.committed(0.0)
    assert speaker.is_left_to_commit()


async def test_store_that_announces_nothing_opens_no_connection_for_it(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.slices()
        assert isinstance(store.database, Postgres)
        assert store.database._announcer._thread is None


async def test_ended_listener_connection_is_replaced_and_everything_woken(postgres_url: str) -> None:
    async with opened(postgres_url) as store, listening(store) as wakeups:
        noted = wakeups.generation()
        with psycopg.connect(postgres_url, autocommit=True) as saboteur:
            ended = saboteur.execute("select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen windlass'")
            assert ended.fetchall() == [(True,)]
        assert await wakeups.wait(noted, at_most=LONG)
        assert wakeups.is_listening
        noted = wakeups.generation(Topic.WORK)
        await store.enqueue([a_job()])
        assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)


async def test_ended_announcer_connection_is_replaced_without_losing_a_word(postgres_url: str) -> None:
    async with opened(postgres_url) as store, listening(store) as wakeups:
        with psycopg.connect(postgres_url, autocommit=True) as saboteur:
            ended = saboteur.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_notify%'"
            )
            assert ended.fetchall() == [(True,)]
        noted = wakeups.generation(Topic.WORK)
        await store.enqueue([a_job()])
        assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)


def test_listen_url_is_only_for_postgres() -> None:
    with pytest.raises(ConfigError, match="listen_url"):
        open_store("sqlite://", rng=Random(1), listen_url="postgresql://localhost/x")
    with pytest.raises(ConfigError, match="listen_url"):
        open_store("postgresql://localhost/x", rng=Random(1), listen_url="sqlite:///x.db")


class Wire:
    """A server's notifications in memory: what is announced is heard, unless the wire is cut."""

    def __init__(self) -> None:
        self.is_deaf = False
        self.is_down = False
        self.connections = 0
        self.announced: list[str] = []
        self._words: asyncio.Queue[str] = asyncio.Queue(100)

    def announce(self, words: Collection[str]) -> None:
        self.announced += words
        if not self.is_deaf:
            for word in words:
                self._words.put_nowait(word)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Hear]:
        self.connections += 1
        if self.is_down:
            raise StoreUnavailable("server is down")
        yield self._hear

    async def _hear(self, seconds: float) -> Sequence[str]:
        try:
            async with asyncio.timeout(seconds):
                return [await self._words.get()]
        except TimeoutError:
            return []


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Give a wire whose listener loses patience soon."""
    for name in ("_PATIENCE_S", "_QUIET_S", "_SHORTEST_PAUSE_S", "_DEAF_PAUSE_S"):
        monkeypatch.setattr(listener, name, 0.01)
    return Wire()


def on(wire: Wire) -> SqlWakeups:
    @asynccontextmanager
    async def listen(wakeups: SqlWakeups) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(WakeupListener(wire.connect, wire.announce, Random(1)).run(wakeups))
            yield
            task.cancel()

    return SqlWakeups(listen)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the condition is anything a test can see
            await asyncio.sleep(0.001)


async def test_silence_is_tested_again_and_again(wire: Wire) -> None:
    async with on(wire) as wakeups:
        await until(lambda: len(wire.announced) >= 4)
        assert wakeups.is_listening
        assert wire.connections == 1


async def test_deaf_listener_says_so_once_and_hears_again_when_the_way_is_mended(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.is_deaf = True
    with caplog.at_level(logging.INFO, "windlass.store"):
        async with on(wire) as wakeups:
            await until(lambda: wire.connections >= 4)
            assert not wakeups.is_listening
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            assert "listen_url" in caplog.text
            noted = wakeups.generation()
            wire.is_deaf = False
            assert await wakeups.wait(noted, at_most=LONG)
            await until(lambda: wakeups.is_listening)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_listener_that_goes_deaf_later_notices(wire: Wire) -> None:
    async with on(wire) as wakeups:
        await until(lambda: wakeups.is_listening)
        wire.is_deaf = True
        await until(lambda: not wakeups.is_listening and wire.connections >= 2)


async def test_listener_outlives_an_outage_and_wakes_everything_afterwards(wire: Wire) -> None:
    async with on(wire) as wakeups:
        await until(lambda: wakeups.is_listening)
        wire.is_down = wire.is_deaf = True
        await until(lambda: not wakeups.is_listening and wire.connections >= 3)
        noted = [wakeups.generation(topic) for topic in Topic]
        wire.is_down = wire.is_deaf = False
        assert await wakeups.wait(sum(noted), at_most=LONG)
        assert all(wakeups.generation(topic) > before for topic, before in zip(Topic, noted, strict=True))


async def test_word_of_another_version_is_no_topic_but_shows_that_the_listener_hears(wire: Wire) -> None:
    async with on(wire) as wakeups:
        await until(lambda: wakeups.is_listening)
        wire.announce(["something new", "work"])
        await until(lambda: wakeups.generation(Topic.WORK) == 2)
        assert wakeups.generation(Topic.DUE) == 1


class Letters:
    """Where announcements go in these tests."""

    def __init__(self) -> None:
        self.sent: list[set[str]] = []
        self.is_down = False
        self.gate = Event()
        self.gate.set()
        self.is_closed = False

    def send(self, words: Collection[str]) -> None:
        self.gate.wait(10)
        if self.is_down:
            raise StoreUnavailable("down")
        self.sent.append(set(words))

    def close(self) -> None:
        self.is_closed = True


def test_words_that_come_while_one_is_sent_go_together() -> None:
    letters = Letters()
    speaker = Announcer(lambda: letters)
    letters.gate.clear()
    speaker.announce(["work"])
    while speaker._pending:
        time.sleep(0.001)
    for _ in range(1000):
        speaker.announce(["work"])
        speaker.announce(["due"])
    letters.gate.set()
    speaker.close()
    assert letters.sent == [{"work"}, {"work", "due"}]
    assert letters.is_closed
    speaker.announce(["too late"])
    assert letters.sent[1:] == [{"work", "due"}]


def test_commit_is_not_called_failed_when_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    letters = Letters()
    speaker = Announcer(lambda: letters)
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse)
        speaker.announce(["work"])
    speaker.announce(["due"])
    speaker.close()
    assert set().union(*letters.sent) == {"work", "due"}


async def test_word_that_could_not_be_sent_is_sent_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcer, "_AFTER_FAILURE_S", 0.01)
    letters = Letters()
    letters.is_down = True
    speaker = Announcer(lambda: letters)
    speaker.announce(["work"])
    await asyncio.sleep(0.05)
    letters.is_down = False
    await until(lambda: letters.sent == [{"work"}])
    letters.is_down = True
    speaker.announce(["due"])
    await asyncio.to_thread(speaker.close)
    assert letters.is_closed


def test_wake_ups_that_bring_nothing_come_more_slowly_until_one_brings_work() -> None:
    pace = Pace()
    now = 1000.0
    gaps = []
    for _ in range(8):
        pace.step(now)
        gaps.append(round((pace.next_at - now) * 1000))
        now = max(now + 0.001, pace.next_at)
    assert gaps == [0, 5, 10, 20, 40, 50, 50, 50]
    pace.credit()
    pace.step(now)
    assert pace.next_at == now


def test_wake_up_after_a_silence_is_prompt() -> None:
    pace = Pace()
    for _ in range(8):
        pace.step(max(1000.0, pace.next_at))
    later = pace.next_at + 0.2
    pace.step(later)
    assert pace.next_at == later


def test_wake_ups_may_be_used_on_one_event_loop_after_another() -> None:
    @asynccontextmanager
    async def listen(wakeups: SqlWakeups) -> AsyncIterator[None]:
        wakeups.wake(EVERYTHING)
        yield

    wakeups = SqlWakeups(listen)

    async def use() -> None:
        async with wakeups:
            noted = wakeups.generation()
            assert await wakeups.wait(noted, at_most=LONG)
            assert not await wakeups.wait(wakeups.generation(), at_most=MOMENT)

    for _ in range(2):
        asyncio.run(use())
        # Comes too late for anybody.
        wakeups.wake(EVERYTHING)


def test_forked_child_can_end_while_the_parent_announces() -> None:
    letters = Letters()
    speaker = Announcer(lambda: letters)
    speaker.announce(["work"])
    with speaker._wake:
        # As it is when a thread of the parent holds the lock at the moment of the fork.
        child = os.fork()
        if child == 0:
            speaker.close()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    speaker.close()
    assert letters.sent == [{"work"}]


async def test_burst_is_delivered_in_few_steps_and_never_lost() -> None:
    @asynccontextmanager
    async def listen(_wakeups: SqlWakeups) -> AsyncIterator[None]:
        yield

    async with SqlWakeups(listen) as wakeups:
        calls: list[Topic] = []
        wakeups.subscribe(calls.append)

        def burst() -> None:
            for _ in range(2000):
                wakeups.wake({Topic.WORK})

        await asyncio.gather(*(asyncio.to_thread(burst) for _ in range(4)))
        noted = wakeups.generation()
        wakeups.wake(EVERYTHING)
        assert await wakeups.wait(noted, at_most=LONG)
    assert calls.count(Topic.WORK) < 1000
