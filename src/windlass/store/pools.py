"""Pools of connections to PostgreSQL, which keep the one that was used last at hand."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from windlass.core.current import detached
from windlass.store.connections import (
    SETUP_S,
    ConnectAttempts,
    WatchedAsyncConnection,
    WatchedConnection,
    lasting,
)
from windlass.store.socket_reader import SocketReader
from windlass.telemetry import LogThrottle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from windlass.store.calls.call import Call

    AsyncPool = AsyncConnectionPool[WatchedAsyncConnection]
    Pool = ConnectionPool[WatchedConnection]

C = TypeVar("C", WatchedConnection, WatchedAsyncConnection)

# The server ends a statement first: its session stays usable, and it is known that nothing was written.
_AFTER_SERVER_S = 1.0
# A plan that was made while the tables were empty would read all of them at every claim, for as long as the server keeps it:
# until the first ANALYZE after a burst, a minute or more. There is an index for everything we ask. The rest is for a client
# that vanishes: the server would keep its session for hours, and the locks of a transaction it had begun. Through a pooler
# nothing is set, and nothing prepared: the session is another client's next.
_SESSION = """
    set enable_seqscan = off;
    set jit = off;
    set idle_in_transaction_session_timeout = '60s';
    set tcp_keepalives_idle = 30;
    set tcp_keepalives_interval = 5;
    set tcp_keepalives_count = 3
"""
_SNAPSHOT = "set transaction isolation level repeatable read, read only"
_UNBOUND = "set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0"


class Terms(NamedTuple):
    """How our sessions are."""

    dsn: str
    prepare: bool
    """Off behind a transaction pooler, where a session is ours for one transaction only."""
    limit: timedelta
    """How long one statement may take, unless its call sets less, or that it has no limit."""

    def limit_of(self, call: Call[Any]) -> timedelta:
        """How long one statement of a call may take: the shorter of both limits; nothing at all is for ever."""
        if call.timeout is None:
            return self.limit
        return min(call.timeout, self.limit) if call.timeout and self.limit else call.timeout


@lru_cache(maxsize=64)
def _milliseconds(limit: timedelta) -> int:
    # Less than one would be none, which is for ever.
    return max(limit // timedelta(milliseconds=1), 1) if limit else 0


@lru_cache(maxsize=64)
def _client_limit_s(limit: timedelta) -> float | None:
    return limit.total_seconds() + _AFTER_SERVER_S if limit else None


class _Spare(Generic[C]):
    """The connection that was used last, for the next call: going through the pool costs as much as a short statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: C | None = None
        self._waiting = 0
        self._is_closed = False

    def take(self) -> C | None:
        """Take it; without one the caller waits at the pool, until it calls `stop_waiting`."""
        with self._lock:
            kept, self._kept = self._kept, None
            self._waiting += kept is None
            return kept

    def stop_waiting(self) -> None:
        with self._lock:
            self._waiting -= 1

    def keep(self, connection: C) -> bool:
        """Keep a connection unless one is kept, a caller waits for it, or the pool has to check it again."""
        with self._lock:
            is_wanted = not (self._kept or self._waiting or self._is_closed) and time.monotonic() < connection.kept_until
            if not is_wanted or connection.pgconn.transaction_status != TransactionStatus.IDLE:
                return False
            self._kept = connection
            return True

    def empty(self) -> C | None:
        with self._lock:
            kept, self._kept = self._kept, None
            return kept

    def close(self) -> C | None:
        """Keep none any more; returns the one that was kept."""
        self._is_closed = True
        return self.empty()


class _LendingPool:
    """A pool for an event loop; it opens when it is first needed."""

    def __init__(self, terms: Terms, attempts: ConnectAttempts, size: int, *, least: int) -> None:
        self._attempts = attempts
        self._spare = _Spare[WatchedAsyncConnection]()
        self._pool: AsyncPool = AsyncConnectionPool(
            connection_class=WatchedAsyncConnection,
            configure=_configure if terms.prepare else None,
            reconnect_failed=_try_again,
            **_pool_options(terms, attempts, size, least=least),
        )

    async def take(self, wait_s: float) -> WatchedAsyncConnection:
        """Wait for a connection; raises ConnectFailed with the cause, and at once where there never was one."""
        while (spare := self._spare.take()) is not None:
            if spare.reader is None or not spare.reader.is_disturbed:
                return spare
            # Its session is over, which is no failure of the next call.
            await self._return(spare, is_over=True)
        try:
            if self._pool.closed:
                # Its tasks serve every later call, so they may not end with the run whose handler is the first to need them.
                with detached():
                    await self._pool.open()
            connection = await self._wait(wait_s)
        finally:
            self._spare.stop_waiting()
        connection.kept_until = time.monotonic() + _IDLE_S
        connection.reader = SocketReader(connection.fileno())
        return connection

    async def _wait(self, wait_s: float) -> WatchedAsyncConnection:
        wait = self._attempts.begin_wait(wait_s)
        while True:
            try:
                return await self._pool.getconn(wait.next_s)
            except PoolTimeout:
                wait.check()

    async def give_back(self, connection: WatchedAsyncConnection, error: BaseException | None) -> None:
        """Take a connection back whose call ended, with an error or without."""
        connection.limit_s = SETUP_S
        if error is None and self._spare.keep(connection):
            return
        try:
            if not connection.is_silent and error is not None:
                with suppress(psycopg.Error):
                    await connection.rollback()
        finally:
            await self._return(connection)
            if connection.is_silent:
                # The others lead the same way, and each would cost its caller the whole limit.
                await self._return(self._spare.empty())
                await self._pool.drain()

    async def _return(self, connection: WatchedAsyncConnection | None, *, is_over: bool = False) -> None:
        if connection is None:
            return
        if connection.reader is not None:
            connection.reader.close()
            connection.reader = None
        if is_over or connection.is_silent:
            await connection.close()
        await self._pool.putconn(connection)

    async def close(self) -> None:
        await self._return(self._spare.close())
        await self._pool.close(_CLOSE_S)


async def _configure(connection: WatchedAsyncConnection) -> None:
    await connection.execute(_SESSION)


class _Loan:
    """A connection for one call; a class and not a generator, as every statement of a worker goes through it."""

    __slots__ = ("_block", "_call", "_connection", "_pool", "_terms")

    def __init__(self, terms: Terms, pool: _LendingPool, call: Call[Any]) -> None:
        self._terms = terms
        self._pool = pool
        self._call = call
        self._block: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> WatchedAsyncConnection:
        terms, call = self._terms, self._call
        limit = terms.limit_of(call)
        bound_ms = _milliseconds(limit)
        self._connection = connection = await self._pool.take(_pool_wait_s(call))
        connection.limit_s = _client_limit_s(limit)
        if not (call.is_single and terms.prepare and connection.bound_ms == bound_ms):
            self._block = _bounded(connection, call, bound_ms, is_local=not terms.prepare)
            try:
                await self._block.__aenter__()
            except BaseException as error:
                await self._pool.give_back(connection, error)
                raise
        return connection

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ended_by = error
        try:
            if self._block is not None:
                await self._block.__aexit__(kind, error, trace)
        except BaseException as raised:
            ended_by = raised
            raise
        finally:
            await self._pool.give_back(self._connection, ended_by)


@asynccontextmanager
async def _bounded(connection: WatchedAsyncConnection, call: Call[Any], bound_ms: int, *, is_local: bool) -> AsyncIterator[None]:
    """Put around a call what it needs: a limit on the server, a transaction."""
    if not is_local and connection.bound_ms != bound_ms:
        await connection.execute(f"set statement_timeout = {bound_ms}")
        connection.bound_ms = bound_ms
    if call.is_single and not (is_local and call.timeout is not None):
        yield
        return
    async with connection.transaction():
        if is_local:
            await connection.execute(f"set local statement_timeout = {bound_ms}")
        if call.is_snapshot:
            await connection.execute(_SNAPSHOT)
        yield


class Pools:
    """Connections for an event loop: some for the engine's own calls, which no reader can use up, and some for all others.

    They are replaced by themselves after an outage.
    """

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        attempts = ConnectAttempts(terms.dsn)
        self._engine = _LendingPool(terms, attempts, _ENGINE_SIZE, least=1)
        self._others = _LendingPool(terms, attempts, _OTHERS_SIZE, least=0)

    def connection(self, call: Call[Any]) -> AbstractAsyncContextManager[WatchedAsyncConnection]:
        """Take a connection for a call; inside a transaction where the call needs one."""
        return _Loan(self._terms, self._engine if call.is_engine or call.is_urgent else self._others, call)

    async def close(self) -> None:
        """Close both, without waiting for what hangs."""
        await asyncio.gather(self._engine.close(), self._others.close())


class _BlockingLendingPool:
    """The same for code without an event loop."""

    def __init__(self, terms: Terms, attempts: ConnectAttempts, size: int, *, least: int) -> None:
        self._attempts = attempts
        self._spare = _Spare[WatchedConnection]()
        self._pool: Pool = ConnectionPool(
            connection_class=WatchedConnection,
            configure=_configure_sync if terms.prepare else None,
            reconnect_failed=_try_again_sync,
            **_pool_options(terms, attempts, size, least=least),
        )

    def take(self, wait_s: float) -> WatchedConnection:
        if (spare := self._spare.take()) is not None:
            return spare
        try:
            if self._pool.closed:
                self._pool.open()
            connection = self._wait(wait_s)
        finally:
            self._spare.stop_waiting()
        connection.kept_until = time.monotonic() + _IDLE_S
        return connection

    def _wait(self, wait_s: float) -> WatchedConnection:
        wait = self._attempts.begin_wait(wait_s)
        while True:
            try:
                return self._pool.getconn(wait.next_s)
            except PoolTimeout:
                wait.check()

    def give_back(self, connection: WatchedConnection, error: BaseException | None) -> None:
        connection.limit_s = SETUP_S
        if error is None and self._spare.keep(connection):
            return
        try:
            if connection.is_silent:
                connection.close()
            elif error is not None:
                with suppress(psycopg.Error):
                    connection.rollback()
        finally:
            self._pool.putconn(connection)
            if connection.is_silent:
                if (spare := self._spare.empty()) is not None:
                    self._pool.putconn(spare)
                self._pool.drain()

    @contextmanager
    def lend(self, wait_s: float) -> Iterator[WatchedConnection]:
        connection = self.take(wait_s)
        try:
            yield connection
        except BaseException as error:
            self.give_back(connection, error)
            raise
        self.give_back(connection, None)

    def close(self) -> None:
        if (spare := self._spare.close()) is not None:
            self._pool.putconn(spare)
        self._pool.close(_CLOSE_S)


def _configure_sync(connection: WatchedConnection) -> None:
    connection.execute(_SESSION)


class SyncPools:
    """The same for code without an event loop, whose only engine call is the renewal of leases."""

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        attempts = ConnectAttempts(terms.dsn)
        self._engine = _BlockingLendingPool(terms, attempts, _HEART_SIZE, least=1)
        self._others = _BlockingLendingPool(terms, attempts, _OTHERS_SIZE, least=0)

    @contextmanager
    def connection(self, call: Call[Any]) -> Iterator[WatchedConnection]:
        """Take a connection for a call; inside a transaction where the call needs one."""
        limit = self._terms.limit_of(call)
        pool = self._engine if call.is_engine or call.is_urgent else self._others
        with pool.lend(_pool_wait_s(call)) as connection:
            connection.limit_s = _client_limit_s(limit)
            with self._bounded(connection, call, _milliseconds(limit)):
                yield connection

    @contextmanager
    def _bounded(self, connection: WatchedConnection, call: Call[Any], bound_ms: int) -> Iterator[None]:
        is_local = not self._terms.prepare
        if not is_local and connection.bound_ms != bound_ms:
            connection.execute(f"set statement_timeout = {bound_ms}")
            connection.bound_ms = bound_ms
        if call.is_single and not (is_local and call.timeout is not None):
            yield
            return
        with connection.transaction():
            if is_local:
                connection.execute(f"set local statement_timeout = {bound_ms}")
            if call.is_snapshot:
                connection.execute(_SNAPSHOT)
            yield

    @contextmanager
    def script(self) -> Iterator[WatchedConnection]:
        """Take a connection for a transaction that may last."""
        with self._others.lend(_POOL_WAIT_S) as connection:
            connection.limit_s = None
            with connection.transaction():
                connection.execute(_UNBOUND)
                yield connection

    def close(self) -> None:
        """Close both, without waiting for what hangs."""
        for pool in (self._engine, self._others):
            pool.close()


_POOL = "windlass"
# Two reports and a claim at a time.
_ENGINE_SIZE = 3
_HEART_SIZE = 1
_OTHERS_SIZE = 4
_CLOSE_S = 1.0
_POOL_WAIT_S = 10.0
# What a burst needed is given back soon, one connection at a time.
_IDLE_S = 30.0
# Left to itself a pool doubles the pause between its attempts, up to minutes: leases would end after an outage while their
# holder still waits for its next attempt.
_RECONNECT_S = 0.25


def _pool_options(terms: Terms, attempts: ConnectAttempts, size: int, *, least: int) -> dict[str, Any]:
    return {
        "name": _POOL,
        "open": False,
        "min_size": least,
        "max_size": size,
        "max_idle": _IDLE_S,
        "num_workers": 2,
        "timeout": _POOL_WAIT_S,
        "reconnect_timeout": _RECONNECT_S,
        "kwargs": lasting(terms.dsn) | {"prepare_threshold": 1 if terms.prepare else None, "attempts": attempts},
    }


def _pool_wait_s(call: Call[Any]) -> float:
    return min(_POOL_WAIT_S, call.timeout.total_seconds()) if call.timeout else _POOL_WAIT_S


async def _try_again(pool: AsyncConnectionPool[Any]) -> None:
    """Begin anew: a pool that has given up tries again only when the next caller comes, and drops the callers that wait."""
    await pool.check()


def _try_again_sync(pool: ConnectionPool[Any]) -> None:
    pool.check()


class _PoolLog(logging.Filter):
    """Lets a pool of ours log now and then why it has no connection, not several times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = LogThrottle(10.0)

    def filter(self, record: logging.LogRecord) -> bool:
        is_ours = isinstance(record.args, tuple) and _POOL in record.args
        return not is_ours or self._throttle.is_due()


logging.getLogger("psycopg.pool").addFilter(_PoolLog())
