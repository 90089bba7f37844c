from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from windlass import ConfigError, InvalidInput, SchemaError, StoreUnavailable, Windlass
from windlass.client.task import Task


def declared(app: Windlass) -> Task[[int], None]:
    @app.task
    def note(number: int) -> None: ...

    return note


def count(app: Windlass) -> int:
    return sum(each.jobs for each in app.counts_sync())


def test_making_an_application_does_no_io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Windlass("sqlite:///jobs.db")
    declared(app)
    app.close()
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_migrated_by_itself(tmp_path: Path) -> None:
    with Windlass(f"sqlite:///{tmp_path / 'new.db'}") as app:
        declared(app).enqueue_sync(1)
        assert count(app) == 1


def test_postgresql_asks_to_be_migrated(postgres_dsn: str) -> None:
    with Windlass(postgres_dsn) as app:
        note = declared(app)
        with pytest.raises(SchemaError, match="windlass migrate"):
            note.enqueue_sync(1)
        app.migrate()
        note.enqueue_sync(1)
        assert count(app) == 1


def test_a_database_in_memory_is_the_same_for_loops_and_blocking_code() -> None:
    with Windlass("sqlite://") as app:
        note = declared(app)
        note.enqueue_sync(1)
        asyncio.run(enqueue_some(note, 2))
        assert count(app) == 3


async def enqueue_some(note: Task[[int], None], jobs: int) -> None:
    for number in range(jobs):
        await note.enqueue(number)


def test_one_loop_after_another_may_use_the_application(url: str) -> None:
    with Windlass(url) as app:
        note = declared(app)
        for _ in range(3):
            asyncio.run(close_after(app, note))
        assert count(app) == 6


async def close_after(app: Windlass, note: Task[[int], None]) -> None:
    async with app:
        await enqueue_some(note, 2)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_ended_without_closing_is_cleaned_up_by_the_next(url: str) -> None:
    app = Windlass(url)
    note = declared(app)
    asyncio.run(enqueue_some(note, 2))
    asyncio.run(close_after(app, note))
    assert app._stores._by_loop == {}
    assert count(app) == 4
    app.close()


def test_several_loops_at_once_each_have_their_own_way(url: str) -> None:
    with Windlass(url) as app:
        note = declared(app)

        async def work() -> None:
            await enqueue_some(note, 5)
            # A shared file stays open for the others; a pool belongs to this loop.
            if not url.startswith("sqlite"):
                await app.aclose()

        threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert count(app) == 20


def test_it_can_be_used_again_after_it_was_closed(url: str) -> None:
    app = Windlass(url)
    note = declared(app)
    note.enqueue_sync(1)
    app.close()
    app.close()
    note.enqueue_sync(2)
    assert count(app) == 2
    app.close()


async def test_blocking_verbs_work_inside_a_running_loop(app: Windlass) -> None:
    note = declared(app)
    await note.enqueue(1)
    note.enqueue_sync(2)
    assert count(app) == 2


def _enqueue_in_child(app: Windlass, note: Any) -> None:
    note.enqueue_sync(2)
    asyncio.run(enqueue_some(note, 1))
    app.close()


@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_opens_its_own_way(url: str) -> None:
    with Windlass(url) as app:
        note = declared(app)
        note.enqueue_sync(1)
        child = multiprocessing.get_context("fork").Process(target=_enqueue_in_child, args=(app, note))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        note.enqueue_sync(3)
        assert count(app) == 4


def test_a_database_in_memory_cannot_be_forked() -> None:
    with Windlass("sqlite://") as app:
        note = declared(app)
        note.enqueue_sync(1)
        child = os.fork()
        if not child:
            try:
                note.enqueue_sync(2)
            except StoreUnavailable:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_lifespan_opens_what_handlers_share() -> None:
    steps: list[str] = []
    app = Windlass("sqlite://", name="shop")

    @app.lifespan
    async def resources(given: Windlass) -> AsyncIterator[dict[str, str]]:
        steps.append(f"open {given.name}")
        yield {"pool": "p"}
        steps.append("close")

    async def use() -> Any:
        async with app.open_state() as state:
            steps.append("work")
            return state

    assert asyncio.run(use()) == {"pool": "p"}
    assert steps == ["open shop", "work", "close"]
    with pytest.raises(InvalidInput, match="has one already"):
        app.lifespan(resources)


def test_a_lifespan_may_be_a_context_manager_or_absent() -> None:
    @asynccontextmanager
    async def resources() -> AsyncIterator[int]:
        yield 5

    async def state_of(app: Windlass) -> Any:
        async with app.open_state() as state:
            return state

    assert asyncio.run(state_of(Windlass("sqlite://", lifespan=resources))) == 5
    assert asyncio.run(state_of(Windlass("sqlite://"))) is None


def test_the_environment_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_DATABASE_URL", f"sqlite:///{tmp_path / 'env.db'}")
    with Windlass() as app:
        declared(app).enqueue_sync(1)
    assert (tmp_path / "env.db").exists()


def test_a_wrong_setting_is_named_at_first_use() -> None:
    app = Windlass("sqlite://", lease_seconds="soon")
    with pytest.raises(ConfigError, match="argument lease_seconds"):
        declared(app).enqueue_sync(1)


SCRIPT = """
from windlass import Windlass
app = Windlass("sqlite:///jobs.db")

@app.task
def note(number: int) -> None: ...

print(note.enqueue_sync(1).id, app.get_sync(1).state)
"""


def test_a_script_without_a_loop_needs_nothing_but_calls_and_ends_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("1 pending\n", "", 0)
