"""Wake-ups cross processes, outlive the server and do not pass a transaction pooler unnoticed."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.crash import bystander
from tests.crash.processes import Fleet, until
from tests.crash.test_pooler import find_pgbouncer, running_pgbouncer
from tests.crash.worker import new_lease
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from windlass.core.job import NewJob
from windlass.core.topic import Topic
from windlass.store import Store, listener, open_store

LONG = timedelta(seconds=30)
"""Nothing polls: only a wake-up ends such a wait early."""


async def test_enqueue_in_another_process_wakes_a_sleeper_every_time(store: Store, url: str, fleet: Fleet) -> None:
    other = fleet.start("bystander", bystander, bystander.Options(url))
    await fleet.go(other)
    found: list[int] = []
    async with store.wakeups as wakeups:
        await until(lambda: wakeups.is_listening, "wake-ups to work")
        for turn in range(50):
            other.tell("enqueue")
            while len(found) <= turn:
                noted = wakeups.generation(Topic.WORK)
                jobs = await store.claim(await store.slices(), 10, new_lease("sleeper", 60))
                found += [job.id for job in jobs]
                if not jobs:
                    assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
    other.tell("end")
    assert await other.end() == 0
    assert found == other.said("enqueued")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_restart_of_the_server_is_noticed_and_outlived(own_server: PostgresServer, tmp_path: Path, mode: str) -> None:
    with fresh_url("postgres", tmp_path, own_server) as url:
        store = open_store(url, rng=Random(1))
        async with store.wakeups as wakeups:
            await until(lambda: wakeups.is_listening, "wake-ups to work")
            await asyncio.to_thread(own_server.stop, mode)  # type: ignore[arg-type]
            await until(lambda: not wakeups.is_listening, "the loss to be noticed")
            noted = wakeups.generation()
            await asyncio.to_thread(own_server.start)
            assert await wakeups.wait(noted, at_most=LONG)
            assert wakeups.is_listening
            noted = wakeups.generation(Topic.WORK)
            await store.enqueue([NewJob(task="work")])
            assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
        await store.aclose()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a listener find itself deaf soon."""
    monkeypatch.setattr(listener, "_PATIENCE_S", 1.0)
    monkeypatch.setattr(listener, "_DEAF_PAUSE_S", 0.1)


async def test_wake_ups_do_not_pass_a_transaction_pooler_and_listen_url_leads_past_it(
    own_server: PostgresServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    *,
    impatient: None,
) -> None:
    del impatient
    program = find_pgbouncer(request)
    caplog.set_level(logging.WARNING, "windlass.store")
    with fresh_url("postgres", tmp_path, own_server) as direct:
        async with running_pgbouncer(program, direct) as pooled:
            deaf = open_store(f"{pooled}&prepare=off", rng=Random(1))
            async with deaf.wakeups as wakeups:
                await until(lambda: "listen_url" in caplog.text, "the listener to find itself deaf")
                await asyncio.sleep(1.5)
                assert not wakeups.is_listening
                assert len(caplog.records) == 1
            await deaf.aclose()
            store = open_store(f"{pooled}&prepare=off", rng=Random(1), listen_url=direct)
            async with store.wakeups as wakeups:
                await until(lambda: wakeups.is_listening, "wake-ups to work past the pooler")
                noted = wakeups.generation(Topic.WORK)
                await store.enqueue([NewJob(task="work")])
                assert await wakeups.wait(noted, Topic.WORK, at_most=LONG)
            await store.aclose()
