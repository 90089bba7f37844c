"""Connections to PostgreSQL that wait for an answer only so long, and the pools that hold them."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from windlass.core.current import detached
from windlass.errors import shown
from windlass.store.watchdog import Wait, watchdog
from windlass.telemetry import LogThrottle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.store.calls.call import Call

_CONNECT_S = 5
# For what the pool itself asks: setting a connection up, looking whether it lives.
_SETUP_S = 5.0
# For a statement that is not waited for any more: the driver asks the server to cancel it and waits for the answer.
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
        watchdog.shorten(wait, _CANCEL_S)


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


class ConnectFailed(psycopg.OperationalError):
    """A pool could not make a connection."""


_LOOK_S = 0.05
# The server is there and will take connections soon.
_SOON = (
    "the database system is starting up",
    "the database system is shutting down",
    "too many clients",
    "remaining connection slots",
)


class ConnectAttempts:
    """The results of the attempts to connect, which a pool itself only logs."""

    def __init__(self, dsn: str) -> None:
        """Start without an attempt."""
        self._dsn = dsn
        self.last: psycopg.Error | None = None
        self.failures = 0
        self.has_connected = False

    def succeed(self) -> None:
        """Record a connection."""
        self.has_connected = True
        self.last = None

    def fail(self, error: psycopg.Error) -> None:
        """Record why there is none."""
        self.last = error
        self.failures += 1

    def begin_wait(self, wait_s: float) -> ConnectionWait:
        """Begin to wait for a connection."""
        return ConnectionWait(self, self.failures, time.monotonic() + wait_s)

    def failed(self) -> ConnectFailed:
        """Describe the last failure."""
        cause = "no reason is known" if self.last is None else _cause(self.last)
        return ConnectFailed(f"cannot connect to PostgreSQL at {_place(self._dsn)}: {cause}")


class ConnectionWait:
    """A call's wait for a connection: patient through an outage, but a database that was never there is reported at once."""

    def __init__(self, attempts: ConnectAttempts, failures: int, ends_at: float) -> None:
        """Remember how many attempts had failed before."""
        self._attempts = attempts
        self._failures = failures
        self._ends_at = ends_at

    @property
    def next_s(self) -> float:
        """How long to ask the pool next."""
        left = max(self._ends_at - time.monotonic(), 0.001)
        return left if self._attempts.has_connected else min(left, _LOOK_S)

    def check(self) -> None:
        """Raise ConnectFailed where waiting has come to nothing; called when the pool had no connection."""
        last = self._attempts.last if self._attempts.failures > self._failures else None
        is_over = time.monotonic() >= self._ends_at
        is_hopeless = not self._attempts.has_connected and not any(text in str(last) for text in _SOON)
        if last is not None and (is_over or is_hopeless):
            raise self._attempts.failed() from last
        if is_over:
            raise PoolTimeout("all connections to the database are in use, or it does not answer")


def _place(dsn: str) -> str:
    """Describe where a connection leads; never with what it needs to get in."""
    try:
        found = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "an address that cannot be read"
    host = found.get("host") or found.get("hostaddr") or os.environ.get("PGHOST") or "the local socket"
    port = found.get("port") or os.environ.get("PGPORT") or "5432"
    user = found.get("user") or os.environ.get("PGUSER")
    database = found.get("dbname") or os.environ.get("PGDATABASE") or user
    return f"{host}, port {port}, database {shown(database)}" + (f" as user {shown(user)}" if user else "")


_CAUSES = (
    ("connection refused", "the connection was refused; is the server running there?"),
    ("servname not supported", "the port is not a number"),
    ("unrecognized service", "the port is not a number"),
    ("invalid integer value", "the port is not a number"),
    ("failed to resolve host", "the host is not known"),
    ("name or service not known", "the host is not known"),
    ("could not translate host name", "the host is not known"),
    ("password authentication failed", "the password is wrong, or there is no such user"),
    ("no password supplied", "the server asks for a password, and the URL has none"),
)


def _cause(error: psycopg.Error) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip()
    # Several hosts fail for several causes.
    if "Multiple connection" in text:
        return text
    known = next((cause for mark, cause in _CAUSES if mark in text.lower()), None)
    return known or text.rpartition("FATAL: ")[2].strip() or type(error).__name__


@contextmanager
def _connecting() -> Iterator[None]:
    """Let a want of file descriptors count as a connection that could not be made, as it does inside the driver's library."""
    try:
        yield
    except OSError as error:
        raise psycopg.OperationalError(f"connection failed: {error}") from error


class WatchedConnection(psycopg.Connection[Any]):
    """A connection for blocking code whose every exchange has a limit."""

    limit_s: float | None = _SETUP_S
    """How long one statement may take; None is for ever."""
    is_silent = False
    """Whether it was given up because no answer came."""
    bound_ms: int | None = None
    """The statement timeout that the server's session has, as far as we set it."""
    wait_now: Wait | None = None

    @classmethod
    def connect(  # type: ignore[override]  # the rest is handed on
        cls, conninfo: str = "", *, attempts: ConnectAttempts | None = None, **options: Any
    ) -> Self:
        """Connect, and record the result for a pool."""
        try:
            with _connecting():
                made = super().connect(conninfo, **options)
        except psycopg.Error as error:
            if attempts is not None:
                attempts.fail(error)
            raise
        if attempts is not None:
            attempts.succeed()
        return made

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

    @classmethod
    async def connect(  # type: ignore[override]  # the rest is handed on
        cls, conninfo: str = "", *, attempts: ConnectAttempts | None = None, **options: Any
    ) -> Self:
        """Connect, and record the result for a pool."""
        try:
            with _connecting():
                made = await super().connect(conninfo, **options)
        except psycopg.Error as error:
            if attempts is not None:
                attempts.fail(error)
            raise
        if attempts is not None:
            attempts.succeed()
        return made

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
    """Describe a connection that notices the loss of its server; what the DSN itself has goes first."""
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


def _milliseconds(limit: timedelta) -> int:
    # Less than one would be none, which is for ever.
    return max(limit // timedelta(milliseconds=1), 1) if limit else 0


def _client_limit_s(limit: timedelta) -> float | None:
    return limit.total_seconds() + _AFTER_SERVER_S if limit else None


class Pools:
    """Connections for an event loop: some for the engine's own calls, which no reader can use up, and some for all others.

    Each pool opens when it is first needed, and replaces connections by itself after an outage.
    """

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        self._attempts = ConnectAttempts(terms.dsn)
        configure = self._configure if terms.prepare else None
        self._engine: AsyncConnectionPool[WatchedAsyncConnection] = AsyncConnectionPool(
            connection_class=WatchedAsyncConnection,
            configure=configure,
            reconnect_failed=_try_again,
            **_pool_options(terms, self._attempts, _ENGINE_SIZE, least=1),
        )
        self._others: AsyncConnectionPool[WatchedAsyncConnection] = AsyncConnectionPool(
            connection_class=WatchedAsyncConnection,
            configure=configure,
            reconnect_failed=_try_again,
            **_pool_options(terms, self._attempts, _OTHERS_SIZE, least=0),
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
        async with self._taken(pool, _pool_wait_s(call)) as connection:
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
    async def _taken(
        self, pool: AsyncConnectionPool[WatchedAsyncConnection], wait_s: float
    ) -> AsyncIterator[WatchedAsyncConnection]:
        connection = await self._get(pool, wait_s)
        try:
            async with connection:
                yield connection
        finally:
            await pool.putconn(connection)

    async def _get(self, pool: AsyncConnectionPool[WatchedAsyncConnection], wait_s: float) -> WatchedAsyncConnection:
        """Wait for a connection; raises ConnectFailed with the cause, and at once where there never was one."""
        wait = self._attempts.begin_wait(wait_s)
        while True:
            try:
                return await pool.getconn(wait.next_s)
            except PoolTimeout:
                wait.check()

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
            if call.is_snapshot:
                await connection.execute(_SNAPSHOT)
            yield

    async def close(self) -> None:
        """Close both, without waiting for what hangs."""
        await asyncio.gather(self._engine.close(_CLOSE_S), self._others.close(_CLOSE_S))


class SyncPools:
    """The same for code without an event loop, whose only engine call is the renewal of leases."""

    def __init__(self, terms: Terms) -> None:
        """Open nothing yet."""
        self._terms = terms
        self._attempts = ConnectAttempts(terms.dsn)
        configure = self._configure if terms.prepare else None
        self._engine: ConnectionPool[WatchedConnection] = ConnectionPool(
            connection_class=WatchedConnection,
            configure=configure,
            reconnect_failed=_try_again_sync,
            **_pool_options(terms, self._attempts, _HEART_SIZE, least=1),
        )
        self._others: ConnectionPool[WatchedConnection] = ConnectionPool(
            connection_class=WatchedConnection,
            configure=configure,
            reconnect_failed=_try_again_sync,
            **_pool_options(terms, self._attempts, _OTHERS_SIZE, least=0),
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
        with self._taken(pool, _pool_wait_s(call)) as connection:
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
    def _taken(self, pool: ConnectionPool[WatchedConnection], wait_s: float) -> Iterator[WatchedConnection]:
        connection = self._get(pool, wait_s)
        try:
            with connection:
                yield connection
        finally:
            pool.putconn(connection)

    def _get(self, pool: ConnectionPool[WatchedConnection], wait_s: float) -> WatchedConnection:
        wait = self._attempts.begin_wait(wait_s)
        while True:
            try:
                return pool.getconn(wait.next_s)
            except PoolTimeout:
                wait.check()

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
        if self._others.closed:
            self._others.open()
        with self._taken(self._others, _POOL_WAIT_S) as connection:
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
    """Begin anew: a pool that has given up tries again only when the next caller comes, and forgets those who wait."""
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
