"""A server that stops answering without a word is waited for only so long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from random import Random

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.silent_proxy import SilentProxy, silent_proxy
from tests.support.stores import fresh_postgres
from windlass.core.blocking import run
from windlass.core.job import NewJob
from windlass.errors import StoreBusy, StoreUnavailable
from windlass.store import SqlStore, open_blocking_store, open_store

LIMIT = timedelta(seconds=1)
# The limit, what the server is left to end the statement itself, one look of the watchdog, and a busy machine.
HANGS_S = 1 + 1 + 0.5 + 2


@pytest.fixture(scope="module")
def dsn(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_postgres(postgres_server) as made:
        yield made


@pytest.fixture
def proxy(dsn: str) -> Iterator[SilentProxy]:
    with silent_proxy(dsn) as made:
        yield made


async def asynchronous(store: SqlStore) -> None:
    await store.clock()


async def in_a_thread(store: SqlStore) -> None:
    await asyncio.to_thread(run, store.clock())


@pytest.fixture(params=["asyncio", "blocking"])
def way(request: pytest.FixtureRequest, proxy: SilentProxy) -> tuple[SqlStore, Callable[[SqlStore], Awaitable[None]]]:
    if request.param == "asyncio":
        return open_store(proxy.url, rng=Random(1), statement_timeout=LIMIT), asynchronous
    return open_blocking_store(proxy.url, rng=Random(1), statement_timeout=LIMIT), in_a_thread


async def test_statement_that_no_answer_comes_to_ends_and_the_next_uses_another_connection(
    proxy: SilentProxy, way: tuple[SqlStore, Callable[[SqlStore], Awaitable[None]]]
) -> None:
    store, ask = way
    await ask(store)
    proxy.silence()
    began = time.monotonic()
    with pytest.raises(StoreBusy, match="did not answer within 2 s"):
        await ask(store)
    assert time.monotonic() - began < HANGS_S
    proxy.heal()
    began = time.monotonic()
    while True:
        try:
            await ask(store)
            break
        except StoreUnavailable:
            assert time.monotonic() - began < 15
    assert time.monotonic() - began < 15
    await store.aclose()


async def test_idle_connections_are_given_up_with_the_one_that_was_silent(proxy: SilentProxy) -> None:
    """Each would cost its caller the whole limit again."""
    store = open_store(proxy.url, rng=Random(1), statement_timeout=LIMIT)
    await asyncio.gather(*(store.clock() for _ in range(30)))
    proxy.silence()
    with pytest.raises(StoreBusy):
        await store.clock()
    proxy.heal()
    began = time.monotonic()
    while time.monotonic() - began < 15:
        try:
            await asyncio.gather(*(store.clock() for _ in range(30)))
            break
        except StoreUnavailable:
            continue
    # One attempt to connect may have been swallowed before.
    assert time.monotonic() - began < 7
    await store.aclose()


async def test_cancelled_statement_does_not_wait_for_a_silent_server(proxy: SilentProxy) -> None:
    store = open_store(proxy.url, rng=Random(1), statement_timeout=timedelta(seconds=60))
    await store.clock()
    proxy.silence()
    asking = asyncio.create_task(store.clock())
    while not proxy.swallowed:  # noqa: ASYNC110 - another thread counts
        await asyncio.sleep(0.01)
    began = time.monotonic()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert time.monotonic() - began < 4
    began = time.monotonic()
    await store.aclose()
    assert time.monotonic() - began < 3


async def test_closing_a_store_whose_statements_hang_takes_a_moment(proxy: SilentProxy) -> None:
    store = open_store(proxy.url, rng=Random(1), statement_timeout=timedelta(seconds=60))
    blocking = open_blocking_store(proxy.url, rng=Random(1), statement_timeout=timedelta(seconds=5))
    await store.clock()
    await in_a_thread(blocking)
    proxy.silence()
    asking = asyncio.create_task(store.clock())
    hanging = asyncio.create_task(asyncio.to_thread(run, blocking.clock()))
    while not proxy.swallowed:  # noqa: ASYNC110 - another thread counts
        await asyncio.sleep(0.01)
    began = time.monotonic()
    await asyncio.gather(store.aclose(), asyncio.to_thread(run, blocking.aclose()))
    assert time.monotonic() - began < 4
    asking.cancel()
    await asyncio.gather(asking, hanging, return_exceptions=True)


async def test_server_ends_a_statement_that_takes_too_long_and_the_connection_stays(dsn: str) -> None:
    store = open_store(dsn, rng=Random(1), statement_timeout=LIMIT)
    with psycopg.connect(dsn) as stranger:
        stranger.execute("lock table windlass_jobs in access exclusive mode")
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="statement timeout"):
            await store.enqueue([NewJob(task="one")])
        assert time.monotonic() - began < HANGS_S
    assert len(await store.enqueue([NewJob(task="one")])) == 1
    await store.aclose()


async def test_renewal_gives_a_silent_connection_up_in_time_for_another_one(proxy: SilentProxy) -> None:
    """With the limit of other statements one silent connection would cost a live worker every lease it has."""
    lease = timedelta(seconds=6)
    store = open_blocking_store(proxy.url, rng=Random(1))
    leases = [(1, 1, None)]
    assert await asyncio.to_thread(run, store.renew(leases, lease)) == []
    proxy.silence()
    # What is open stays silent; new connections are served.
    proxy.heal()
    began = time.monotonic()
    with pytest.raises(StoreBusy, match=r"did not answer within 2\.5 s"):
        await asyncio.to_thread(run, store.renew(leases, lease))
    assert await asyncio.to_thread(run, store.renew(leases, lease)) == []
    assert time.monotonic() - began < lease.total_seconds() * 3 / 4
    await asyncio.to_thread(run, store.aclose())


async def test_renewal_of_a_long_lease_waits_no_longer_than_other_statements(proxy: SilentProxy) -> None:
    store = open_blocking_store(proxy.url, rng=Random(1), statement_timeout=LIMIT)
    leases = [(1, 1, None)]
    await asyncio.to_thread(run, store.renew(leases, timedelta(minutes=10)))
    proxy.silence()
    began = time.monotonic()
    with pytest.raises(StoreBusy):
        await asyncio.to_thread(run, store.renew(leases, timedelta(minutes=10)))
    assert time.monotonic() - began < HANGS_S
    await asyncio.to_thread(run, store.aclose())
