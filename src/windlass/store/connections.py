"""Connections to PostgreSQL that wait for an answer only so long, and the pools that hold them."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from windlass.core.current import detached
from windlass.store.watchdog import Wait, watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.store.calls.call import Call

_CONNECT_S = 5
# For what the pool itself asks: setting a connection up, looking whether it lives.
_SETUP_S = 5.0
# For a statement that nobody waits for any more: the driver asks the server to cancel it and waits for the answer.
_CANCEL_S = 1.0
# The server ends a statement first: its session stays usable, and it is known that nothing was written.
_AFTER_SERVER_S = 1.0


class NoAnswer(psycopg.OperationalError):
    """The server did not answer within the limit, and the connection was given up."""


class _Abandoned(BaseException):
    """The caller was interrupted, and the driver lost the connection while it asked the server to cancel."""


def _abandon(wait: Wait | None) -> None:
    if wait is not None:
        wait.is_abandoned = True
        wait.shorten(_CANCEL_S)


class _Waiting(Protocol):
    limit_s: float | None
    is_silent: bool
    wait_now: Wait | None

    def fileno(self) -> int: ...


@contextmanager
def _limited(connection: _Waiting) -> Iterator[None]:
    limit_s = connection.limit_s
    if limit_s is None:
        yield
        return
    connection.wait_now = wait = Wait(connection.fileno(), limit_s)
    watchdog.enter(wait)
    try:
        yield
    except psycopg.OperationalError as error:
        if wait.is_abandoned:
            raise _Abandoned from error
        if wait.is_cut:
            raise NoAnswer(f"the database did not answer within {limit_s:g} s") from error
        raise
    finally:
        watchdog.leave(wait)
        connection.wait_now = None
        connection.is_silent = wait.is_cut


class WatchedConnection(psycopg.Connection[Any]):
    """A connection for blocking code whose every exchange has a limit."""

    limit_s: float | None = _SETUP_S
    """How long one statement may take; None is for ever."""
    is_silent = False
    """Whether it was given up because no answer came."""
    bound_ms: int | None = None
    """The statement timeout that the server's session has, as far as we set it."""
    wait_now: Wait | None = None

    def wait(self, *args: Any, **options: Any) -> Any:
        """Wait for the server as long as the limit allows."""
        try:
            with _limited(self):
                return super().wait(*args, **options)
        except _Abandoned:
            raise KeyboardInterrupt from None

    def _try_cancel(self, *, timeout: float = _CANCEL_S) -> None:
        _abandon(self.wait_now)
        super()._try_cancel(timeout=min(timeout, _CANCEL_S))


class WatchedAsyncConnection(psycopg.AsyncConnection[Any]):
    """The same for an event loop."""

    limit_s: float | None = _SETUP_S
    is_silent = False
    bound_ms: int | None = None
    wait_now: Wait | None = None

    async def wait(self, *args: Any, **options: Any) -> Any:
        """Wait for the server as long as the limit allows."""
        try:
            with _limited(self):
                return await super().wait(*args, **options)
        except _Abandoned:
            raise asyncio.CancelledError from None

    async def _try_cancel(self, *, timeout: float = _CANCEL_S) -> None:  # noqa: ASYNC109 - the driver's own signature
        _abandon(self.wait_now)
        await super()._try_cancel(timeout=min(timeout, _CANCEL_S))


def lasting(dsn: str) -> dict[str, Any]:
    """Describe a connection that notices the loss of its server; what the DSN says itself goes first."""
    wanted = {
        "connect_timeout": _CONNECT_S,
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 4000,
    }
    return wanted | conninfo_to_dict(dsn) | {"autocommit": True}


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
_UNBOUND = "set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0"


class Terms(NamedTuple):
    """How our sessions are."""

    dsn: str
    prepare: bool
    """Off behind a transaction pooler, where a session is ours for one transaction only."""
    limit: timedelta
    """How long one statement may take, unless its call says otherwise."""

    def limit_of(self, call: Call[Any]) -> timedelta:
        """How long one statement of a call may take; nothing is for ever."""
        return self.limit if call.timeout is None else call.timeout


def _milliseconds(limit: timedelta) -> int:
    return limit // timedelta(milliseconds=1)


def _client_limit_s(limit: timedelta) -> float | None:
    return limit.total_seconds() + _AFTER_SERVER_S if limit else None


class Pools:
    """Connections for an event loop: some for the engine's own calls, which no reader can use up, and some for all others.

    Each pool opens when it is first needed, and replaces connections by itself after an outage.
    """

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        configure = self._configure if terms.prepare else None
        self._engine: AsyncConnectionPool[WatchedAsyncConnection] = AsyncConnectionPool(
            connection_class=WatchedAsyncConnection,
            configure=configure,
            reconnect_failed=_try_again,
            **_pool_options(terms, _ENGINE_SIZE, least=1),
        )
        self._others: AsyncConnectionPool[WatchedAsyncConnection] = AsyncConnectionPool(
            connection_class=WatchedAsyncConnection,
            configure=configure,
            reconnect_failed=_try_again,
            **_pool_options(terms, _OTHERS_SIZE, least=0),
        )

    async def _configure(self, connection: WatchedAsyncConnection) -> None:
        await connection.execute(_SESSION)

    @asynccontextmanager
    async def connection(self, call: Call[Any]) -> AsyncIterator[WatchedAsyncConnection]:
        """Take a connection for a call; inside a transaction where the call needs one."""
        limit = self._terms.limit_of(call)
        pool = self._engine if call.is_engine or call.is_urgent else self._others
        if pool.closed:
            # Its tasks serve every later call, so they may not end with the run whose handler is the first to need them.
            with detached():
                await pool.open()
        async with pool.connection(_pool_wait_s(call)) as connection:
            connection.limit_s = _client_limit_s(limit)
            try:
                async with self._bounded(connection, call, _milliseconds(limit)):
                    yield connection
            finally:
                connection.limit_s = _SETUP_S
                if connection.is_silent:
                    await connection.close()
                    # The others lead the same way, and each would cost its caller the whole limit.
                    await pool.drain()

    @asynccontextmanager
    async def _bounded(self, connection: WatchedAsyncConnection, call: Call[Any], bound_ms: int) -> AsyncIterator[None]:
        is_local = not self._terms.prepare
        if not is_local and connection.bound_ms != bound_ms:
            await connection.execute(f"set statement_timeout = {bound_ms}")
            connection.bound_ms = bound_ms
        if call.is_single and not (is_local and call.timeout is not None):
            yield
            return
        async with connection.transaction():
            if is_local:
                await connection.execute(f"set local statement_timeout = {bound_ms}")
            yield

    async def close(self) -> None:
        """Close both, without waiting for what hangs."""
        await asyncio.gather(self._engine.close(_CLOSE_S), self._others.close(_CLOSE_S))


class SyncPools:
    """The same for code without an event loop, whose only engine call is the renewal of leases."""

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        configure = self._configure if terms.prepare else None
        self._engine: ConnectionPool[WatchedConnection] = ConnectionPool(
            connection_class=WatchedConnection,
            configure=configure,
            reconnect_failed=_try_again_sync,
            **_pool_options(terms, _HEART_SIZE, least=1),
        )
        self._others: ConnectionPool[WatchedConnection] = ConnectionPool(
            connection_class=WatchedConnection,
            configure=configure,
            reconnect_failed=_try_again_sync,
            **_pool_options(terms, _OTHERS_SIZE, least=0),
        )

    def _configure(self, connection: WatchedConnection) -> None:
        connection.execute(_SESSION)

    @contextmanager
    def connection(self, call: Call[Any]) -> Iterator[WatchedConnection]:
        """Take a connection for a call; inside a transaction where the call needs one."""
        limit = self._terms.limit_of(call)
        pool = self._engine if call.is_engine or call.is_urgent else self._others
        if pool.closed:
            pool.open()
        with pool.connection(_pool_wait_s(call)) as connection:
            connection.limit_s = _client_limit_s(limit)
            try:
                with self._bounded(connection, call, _milliseconds(limit)):
                    yield connection
            finally:
                connection.limit_s = _SETUP_S
                if connection.is_silent:
                    connection.close()
                    pool.drain()

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
            yield

    @contextmanager
    def script(self) -> Iterator[WatchedConnection]:
        """Take a connection for a transaction that may last."""
        if self._others.closed:
            self._others.open()
        with self._others.connection() as connection:
            connection.limit_s = None
            try:
                with connection.transaction():
                    connection.execute(_UNBOUND)
                    yield connection
            finally:
                connection.limit_s = _SETUP_S

    def close(self) -> None:
        """Close both, without waiting for what hangs."""
        for pool in (self._engine, self._others):
            pool.close(_CLOSE_S)


_POOL = "windlass"
_ENGINE_SIZE = 2
_HEART_SIZE = 1
_OTHERS_SIZE = 4
_CLOSE_S = 1.0
_POOL_WAIT_S = 10.0
# What a burst needed is given back soon, one connection at a time.
_IDLE_S = 30.0
# Left to itself a pool doubles the pause between its attempts, up to minutes: leases would end after an outage while their
# holder still waits for its next attempt.
_RECONNECT_S = 0.25


def _pool_options(terms: Terms, size: int, *, least: int) -> dict[str, Any]:
    return {
        "name": _POOL,
        "open": False,
        "min_size": least,
        "max_size": size,
        "max_idle": _IDLE_S,
        "num_workers": 2,
        "timeout": _POOL_WAIT_S,
        "reconnect_timeout": _RECONNECT_S,
        "kwargs": lasting(terms.dsn) | {"prepare_threshold": 1 if terms.prepare else None},
    }


def _pool_wait_s(call: Call[Any]) -> float:
    return min(_POOL_WAIT_S, call.timeout.total_seconds()) if call.timeout else _POOL_WAIT_S


async def _try_again(pool: AsyncConnectionPool[Any]) -> None:
    """Begin anew: a pool that has given up tries again only when the next caller comes, and forgets those who wait."""
    await pool.check()


def _try_again_sync(pool: ConnectionPool[Any]) -> None:
    pool.check()


class _Rarely(logging.Filter):
    """Lets a pool of ours log now and then why it has no connection, not several times a second."""

    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self._pause_s = pause_s
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if not (isinstance(record.args, tuple) and _POOL in record.args):
            return True
        now = time.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + self._pause_s
        return True


logging.getLogger("psycopg.pool").addFilter(_Rarely(10.0))
