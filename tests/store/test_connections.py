"""The engine's calls have connections that readers cannot use up, and sessions of ours end when their client vanishes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

import psycopg
import pytest

from tests.store.builders import a_job
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres
from windlass.core.blocking import run
from windlass.core.job import JobState, Lease
from windlass.core.outcome import Returned, Run, decide
from windlass.errors import StoreBusy
from windlass.store import Store, open_blocking_store, open_store
from windlass.store.calls.call import single
from windlass.store.database import Bounded

READERS = 50


@pytest.fixture(scope="module")
def dsn(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_postgres(postgres_server) as made:
        yield made


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    opened = open_store(dsn, rng=Random(1))
    yield opened
    await opened.aclose()


@contextmanager
def stuck(dsn: str) -> Iterator[None]:
    """Let every read of sources wait."""
    with psycopg.connect(dsn) as stranger:
        stranger.execute("lock table windlass_sources in access exclusive mode")
        yield


@pytest.mark.parametrize("prepare", ["on", "off"])
async def test_jobs_are_claimed_renewed_and_finished_while_readers_hold_every_other_connection(dsn: str, prepare: str) -> None:
    store = open_store(f"{dsn}&prepare={prepare}", rng=Random(1))
    blocking = open_blocking_store(f"{dsn}&prepare={prepare}", rng=Random(1))
    await store.enqueue([a_job()])
    with stuck(dsn):
        readers = [asyncio.create_task(store.sources.list()) for _ in range(READERS)]
        readers += [asyncio.create_task(asyncio.to_thread(run, blocking.sources.list())) for _ in range(4)]
        await asyncio.sleep(0.3)
        began = time.monotonic()
        lease = Lease(worker="w", token=1, length=timedelta(seconds=20))
        [job] = await store.claim(await store.slices(), 1, lease)
        held = await asyncio.to_thread(run, blocking.renew([(job.id, job.token, None)], timedelta(seconds=20)))
        assert [one.id for one in held] == [job.id]
        ending = decide(job, Returned(None), Run(), now=await store.clock(), rng=Random(1))
        assert await store.finish([ending]) == {job.id: JobState.COMPLETED}
        assert time.monotonic() - began < 2
        assert not any(reader.done() for reader in readers)
    await asyncio.gather(*readers)
    await store.aclose()
    await blocking.aclose()


@pytest.mark.parametrize("prepare", ["on", "off"])
async def test_read_that_asked_for_a_bound_ends_there_and_writes_are_left_alone(dsn: str, prepare: str) -> None:
    store = open_store(f"{dsn}&prepare={prepare}", rng=Random(1))
    quick = store.over(Bounded(store.database, timedelta(milliseconds=300)))
    with stuck(dsn):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="statement timeout"):
            await quick.sources.list()
        assert time.monotonic() - began < 2
        # More of them than connections: those that get none in time are told the same.
        answers = await asyncio.gather(*(quick.sources.list() for _ in range(20)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreBusy}
        assert time.monotonic() - began < 4
    # Another call on the same connection has its own limit again.
    assert await store.sources.list() == []
    await store.aclose()


async def test_sessions_of_ours_end_by_themselves_when_their_client_vanishes(store: Store) -> None:
    """Else the server keeps the locks of a transaction whose client is gone, and its session for hours."""
    shown = single("identity", {}, lambda found: found)
    await store.run(shown)
    pools = store.database._pools  # type: ignore[attr-defined]
    async with pools.connection(shown) as connection:
        cursor = await connection.execute(
            "select current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')"
        )
        assert await cursor.fetchone() == ("1min", "10s")


WHO = single("identity", {}, lambda found: found, is_engine=True)


async def session_of(store: Store) -> int:
    """Name the server's process that serves the next engine call."""
    async with store.database._pools.connection(WHO) as connection:  # type: ignore[attr-defined]
        return int(connection.info.backend_pid)


async def test_calls_that_follow_each_other_share_a_session(store: Store) -> None:
    await store.run(WHO)
    assert len({await session_of(store) for _ in range(5)}) == 1
    async with store.database._pools.connection(WHO) as connection:  # type: ignore[attr-defined]
        assert connection.info.backend_pid != await session_of(store)


async def test_session_that_the_server_has_ended_fails_no_call_and_leaves_the_loop_at_rest(store: Store, dsn: str) -> None:
    await store.run(WHO)
    ended = await session_of(store)
    with psycopg.connect(dsn, autocommit=True) as stranger:
        stranger.execute("select pg_terminate_backend(%s, 5000)", [ended])
    began = time.process_time()
    await asyncio.sleep(0.3)
    assert time.process_time() - began < 0.15
    await store.run(WHO)
    assert await session_of(store) != ended


async def test_call_that_is_cancelled_leaves_its_connection_fit_for_the_next(store: Store, dsn: str) -> None:
    with stuck(dsn):
        read = asyncio.create_task(store.sources.list())
        await asyncio.sleep(0.2)
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
    assert await store.sources.list() == []


_CONNECTS = """
import os, resource, sys
from windlass.store.connections import WatchedConnection

import psycopg

# Whatever is loaded late is loaded before nothing can be opened.
WatchedConnection.connect(sys.argv[1]).close()
highest = max(int(name) for name in os.listdir("/proc/self/fd"))
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
for free in range(8):
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + free, most))
    try:
        WatchedConnection.connect(sys.argv[1]).close()
    except psycopg.OperationalError as error:
        print("refused", type(error.__cause__).__name__)
    else:
        print("connected")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is open")
def test_a_want_of_file_descriptors_is_a_connection_that_could_not_be_made(postgres_dsn: str) -> None:
    done = subprocess.run([sys.executable, "-c", _CONNECTS, postgres_dsn], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"refused OSError", "connected"} <= set(done.stdout.splitlines())
