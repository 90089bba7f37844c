from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.testing.conftest import NOWHERE
from windlass import InvalidInput, Windlass
from windlass.errors import StoreError
from windlass.testing import FakeClock, enqueued, fresh, run_all_sync


def shop() -> Windlass:
    app = Windlass(NOWHERE)

    @app.task
    async def email(to: str) -> str:
        return to

    return app


async def test_jobs_of_one_block_are_not_in_the_next() -> None:
    app = shop()
    for _ in range(2):
        async with fresh(app):
            assert enqueued(app) == []
            await app.enqueue("email", {"to": "ann"})
            assert len(enqueued(app)) == 1


def test_it_works_without_an_event_loop() -> None:
    app = shop()
    with fresh(app) as same:
        assert same is app
        app.enqueue_sync("email", {"to": "ann"})
        assert [ran.result for ran in run_all_sync(app)] == ["ann"]


def test_afterwards_the_application_is_on_its_own_database_again() -> None:
    app = shop()
    with fresh(app):
        assert app.settings.database_url == "sqlite://"
    assert app.settings.database_url == NOWHERE
    with pytest.raises(StoreError):
        app.enqueue_sync("email", {"to": "ann"})


def test_a_block_that_fails_lets_go_too() -> None:
    app = shop()
    before = threading.active_count()

    def fail() -> None:
        with fresh(app):
            app.enqueue_sync("email", {"to": "ann"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert app.settings.database_url == NOWHERE
    assert threading.active_count() == before


def test_blocks_may_be_nested() -> None:
    app = shop()
    with fresh(app):
        app.enqueue_sync("email", {"to": "ann"})
        with fresh(app):
            assert enqueued(app) == []
        assert len(enqueued(app)) == 1


def test_what_the_block_declares_is_forgotten() -> None:
    app = shop()
    heard: list[str] = []
    for _ in range(2):
        with fresh(app):
            app.on("enqueue")(lambda event: heard.append(event.task))
            app.lifespan(lambda: None)

            @app.task
            def resize(picture: int) -> int:
                return picture

            resize.enqueue_sync(picture=1)
    assert heard == ["resize", "resize"]
    assert set(app.tasks) == app.registry.names == {"email"}


def test_failures_that_a_breaker_has_counted_are_forgotten() -> None:
    app = shop()
    guard = app.breaker("mail", threshold=2)
    for _ in range(3):
        with fresh(app):
            with pytest.raises(OSError, match="down"), guard:
                raise OSError("down")
            assert app.breakers.get_sync("mail") is None


def test_migrating_inside_the_block_stays_inside() -> None:
    app = shop()
    with fresh(app):
        app.migrate()


def test_a_file_serves_a_callers_own_connection(tmp_path: Path) -> None:
    from windlass.store.sqlite_library import sqlite_driver as driver  # noqa: PLC0415 - the library that this process uses

    app = shop()
    path = tmp_path / "jobs.db"
    with fresh(app, f"sqlite:///{path}"):
        app.stats_sync()
        connection = driver.connect(path)
        app.enqueue_sync("email", {"to": "ann"}, connection=connection)
        assert enqueued(app) == []
        connection.commit()
        connection.close()
        assert len(enqueued(app)) == 1


async def test_time_stands_still_for_every_verb(app: Windlass, clock: FakeClock) -> None:
    @app.task
    async def email(to: str) -> None: ...

    job = await app.get(await email.enqueue(to="ann"))
    assert job.created_at == job.run_at == clock.now()
    clock.advance(days=400)
    assert (await app.cancel(job)).closed_at == clock.now()
    assert app.enqueue_sync("email", {"to": "bob"}).id > job.id
    assert enqueued(app)[-1].created_at == clock.now()


def test_the_clock_is_this_moment_unless_it_is_given() -> None:
    block = fresh(shop())
    with block as app:
        job = app.get_sync(app.enqueue_sync("email", {"to": "ann"}))
    assert job.created_at == block.clock.now()


def test_a_clock_without_a_time_zone_is_refused(clock: FakeClock) -> None:
    with pytest.raises(InvalidInput, match="at"):
        clock.move_to(clock.now().replace(tzinfo=None))
