"""PostgreSQL: a pool of connections, or the caller's own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout, TooManyRequests

from windlass.errors import ConfigError, RowsLocked, SchemaError, StoreConflict, StoreError, StoreRefused, StoreUnavailable
from windlass.store.announcer import Announcer
from windlass.store.calls import work
from windlass.store.calls.call import asked
from windlass.store.listener import Listener
from windlass.store.owner import Owner
from windlass.store.queries import PARAMETER, Queries, queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection
    from random import Random

    from windlass.store.calls.call import Call, Step
    from windlass.store.listener import Hear
    from windlass.store.rows import Row
    from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")

_TRIES = 5
# Data exceptions, constraints, program limits.
_ABOUT_CONTENT = ("22", "23", "54")


class _Texts:
    """The statements in psycopg's parameter style."""

    def __init__(self, texts: Queries) -> None:
        self._texts = texts
        self._ready: dict[tuple[str, int], str] = {}

    def of(self, step: Step) -> str:
        found = self._ready.get((step.query, step.arms))
        if found is None:
            [statement] = self._texts.statements(step.query, step.arms)
            found = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
            self._ready[step.query, step.arms] = found
        return found


_texts = _Texts(queries("postgres"))


class Postgres:
    """A pool for asyncio; connections are replaced by themselves after an outage."""

    dialect = "postgres"

    def __init__(self, dsn: str, *, size: int = 4, prepare: bool = True, listen_dsn: str | None = None) -> None:
        """Describe the pool; it opens at first use.

        For transaction poolers: `prepare=False`, and as `listen_dsn` one that leads to the server itself.
        """
        self.dsn = dsn
        self._listen_dsn = listen_dsn or dsn
        self._announcer = Announcer(partial(_Notifier, dsn))
        self._pool = AsyncConnectionPool(
            dsn, reconnect_failed=_try_again, configure=_steady if prepare else None, **_pool_options(size, prepare=prepare)
        )
        self._is_open = False
        self._identity: str | None = None
        self._owner = Owner()

    async def open(self) -> None:
        """Open the pool; the server may still be down."""
        self._owner.check()
        if not self._is_open:
            self._is_open = True
            await self._pool.open()

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        answer = await self._run(call)
        self._announcer.announce(call.wakes(answer))
        return answer

    async def _run(self, call: Call[T]) -> T:
        cancels = _cancels()
        await self.open()
        for last in range(_TRIES):
            try:
                async with self._pool.connection() as connection:
                    # Before Python 3.12 the pool's wait swallows a cancellation that comes as the wait ends: whoever
                    # cancelled a loop of calls would wait for its end for ever.
                    if _cancels() > cancels:
                        raise asyncio.CancelledError
                    if call.is_single:
                        return await _drive_async(connection, call)
                    async with connection.transaction():
                        return await _drive_async(connection, call)
            except _AGAIN as error:
                if last == _TRIES - 1:
                    raise translated(error) from error
            except _FROM_DRIVER as error:
                raise translated(error) from error
        raise AssertionError

    async def run_within(self, connection: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; it is visible iff that commits."""
        if self._identity is None:
            self._identity = await self.run(work.identity())
        try:
            await connection.execute(_BEGIN)
            async with connection.transaction():
                _refuse_stranger(self._identity, await _drive_async(connection, work.identity()))
                answer = await _drive_async(connection, call)
                if topics := call.wakes(answer):
                    await connection.cursor(row_factory=tuple_row).execute(_NOTIFY, [list(topics)])
                return answer
        except pg.UndefinedTable as error:
            raise ConfigError(_NOT_OURS) from error
        except _FROM_DRIVER as error:
            raise translated(error) from error

    @asynccontextmanager
    async def listen(self, wakeups: SqlWakeups, rng: Random) -> AsyncIterator[None]:
        """Ring `wakeups` when anybody announces a commit, on a connection of its own."""
        listener = Listener(partial(_notices, self._listen_dsn), self._announcer.announce, rng)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listener.run(wakeups))
            yield
            listening.cancel()

    async def aclose(self) -> None:
        """Close the pool."""
        await asyncio.to_thread(self._announcer.close)
        await self._pool.close()


class SyncPostgres:
    """The same for code without an event loop."""

    dialect = "postgres"

    def __init__(self, dsn: str, *, size: int = 4, prepare: bool = True) -> None:
        """Describe the pool; it opens at first use."""
        self.dsn = dsn
        self._announcer = Announcer(partial(_Notifier, dsn))
        self._pool = ConnectionPool(
            dsn,
            reconnect_failed=_try_again_sync,
            configure=_steady_sync if prepare else None,
            **_pool_options(size, prepare=prepare),
        )
        self._is_open = False
        self._identity: str | None = None
        self._owner = Owner()

    def open(self) -> None:
        """Open the pool; the server may still be down."""
        self._owner.check()
        if not self._is_open:
            self._is_open = True
            self._pool.open()

    def run_sync(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        answer = self._run(call)
        self._announcer.announce(call.wakes(answer))
        return answer

    def _run(self, call: Call[T]) -> T:
        self.open()
        for last in range(_TRIES):
            try:
                with self._pool.connection() as connection:
                    if call.is_single:
                        return _drive(connection, call)
                    with connection.transaction():
                        return _drive(connection, call)
            except _AGAIN as error:
                if last == _TRIES - 1:
                    raise translated(error) from error
            except _FROM_DRIVER as error:
                raise translated(error) from error
        raise AssertionError

    def run_script(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run `work` with a connection inside one transaction; for migrations."""
        self.open()
        try:
            with self._pool.connection() as connection, connection.transaction():
                return work(connection)
        except _FROM_DRIVER as error:
            raise translated(error) from error

    def run_on(self, connection: psycopg.Connection[Any], call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; it is visible iff that commits."""
        if self._identity is None:
            self._identity = self.run_sync(work.identity())
        try:
            connection.execute(_BEGIN)
            with connection.transaction():
                _refuse_stranger(self._identity, _drive(connection, work.identity()))
                answer = _drive(connection, call)
                if topics := call.wakes(answer):
                    connection.cursor(row_factory=tuple_row).execute(_NOTIFY, [list(topics)])
                return answer
        except pg.UndefinedTable as error:
            raise ConfigError(_NOT_OURS) from error
        except _FROM_DRIVER as error:
            raise translated(error) from error

    def close(self) -> None:
        """Close the pool."""
        self._announcer.close()
        self._pool.close()


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


class _Notifier:
    """Where announcements go: a connection of their own, made when it is needed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.Connection[Any] | None = None

    def send(self, words: Collection[str]) -> None:
        try:
            try:
                self._send(words)
            except psycopg.Error:
                # The connection may have been lost long ago, without anybody noticing.
                self.close()
                self._send(words)
        except psycopg.Error as error:
            self.close()
            raise translated(error) from error

    def _send(self, words: Collection[str]) -> None:
        if self._connection is None:
            self._connection = psycopg.Connection.connect(**_lasting(self._dsn))
        self._connection.execute(_NOTIFY, [list(words)])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@asynccontextmanager
async def _notices(dsn: str) -> AsyncIterator[Hear]:
    """Open a connection that hears announcements."""
    try:
        async with await psycopg.AsyncConnection.connect(**_lasting(dsn)) as connection:
            await connection.execute(_LISTEN)
            yield partial(_hear, connection)
    except psycopg.Error as error:
        raise translated(error) from error


async def _hear(connection: psycopg.AsyncConnection[Any], seconds: float) -> list[str]:
    return [notice.payload async for notice in connection.notifies(timeout=seconds, stop_after=1)]


def _lasting(dsn: str) -> dict[str, Any]:
    """Describe a connection that is idle for long and must notice the loss of its server."""
    wanted = {
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 4000,
    }
    return wanted | conninfo_to_dict(dsn) | {"autocommit": True, "prepare_threshold": None}


# One channel for all topics, so that any announcement proves to a listener that it hears.
_LISTEN = "listen windlass"
_NOTIFY = "select pg_notify('windlass', word) from unnest(%s::text[]) as word"


_NOT_OURS = "the connection is to another database than the store's"
# Any statement begins the caller's transaction; without one, our block would begin it and commit it at its end.
_BEGIN = "select 1"
# The last: a text that the driver cannot hand to the database.
_FROM_DRIVER = (psycopg.Error, PoolTimeout, TooManyRequests, UnicodeError)
# Another transaction was in the way; the same call may well succeed. A unique key taken between look and write is one of
# them: at the next look the call sees the winner.
_AGAIN = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation)


_POOL = "windlass"
# Left to itself a pool doubles the pause between its attempts, up to minutes: leases would end after an outage while their
# holder still waits for its next attempt.
_RECONNECT_S = 0.25


def _pool_options(size: int, *, prepare: bool) -> dict[str, Any]:
    return {
        "name": _POOL,
        "open": False,
        "min_size": 1,
        "max_size": size,
        "timeout": 10.0,
        "reconnect_timeout": _RECONNECT_S,
        "kwargs": {"autocommit": True, "prepare_threshold": 1 if prepare else None},
    }


# A plan that was made while the tables were empty would read all of them at every claim, for as long as the server keeps it:
# until the first ANALYZE after a burst, a minute or more. There is an index for everything we ask. Through a pooler nothing
# is set, and nothing prepared.
_STEADY = "set enable_seqscan = off; set jit = off"


async def _steady(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(_STEADY)


def _steady_sync(connection: psycopg.Connection[Any]) -> None:
    connection.execute(_STEADY)


async def _try_again(pool: AsyncConnectionPool[Any]) -> None:
    """Begin anew: a pool that has given up tries again only when the next caller comes, and forgets those who wait."""
    await pool.check()


def _try_again_sync(pool: ConnectionPool[Any]) -> None:
    pool.check()


class _SometimesTold(logging.Filter):
    """Lets a pool of ours tell now and then why it has no connection, not several times a second."""

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


logging.getLogger("psycopg.pool").addFilter(_SometimesTold(10.0))


async def _drive_async(connection: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
    steps = call.steps()
    try:
        step = next(steps)
        while True:
            if step.ask is not None:
                step = steps.send(await _ask(connection, step.ask))
                continue
            cursor = connection.cursor(binary=True, row_factory=tuple_row)
            await cursor.execute(_texts.of(step), step.params)
            step = steps.send(await cursor.fetchall())
    except StopIteration as done:
        value: T = done.value
        return value


async def _ask(connection: psycopg.AsyncConnection[Any], ask: Callable[[Any], Any]) -> list[Row]:
    answer = ask(connection)
    return [(await answer if inspect.isawaitable(answer) else answer,)]


def _drive(connection: psycopg.Connection[Any], call: Call[T]) -> T:
    steps = call.steps()
    try:
        step = next(steps)
        while True:
            if step.ask is not None:
                step = steps.send(asked(step, connection))
                continue
            step = steps.send(
                connection.cursor(binary=True, row_factory=tuple_row).execute(_texts.of(step), step.params).fetchall()
            )
    except StopIteration as done:
        value: T = done.value
        return value


def _refuse_stranger(ours: str, theirs: str) -> None:
    if ours != theirs:
        raise ConfigError(f"{_NOT_OURS} ({theirs!r}, not {ours!r})")


def _text(error: BaseException) -> str:
    return re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__


def translated(error: BaseException) -> StoreError:
    """Turn a driver's error into one of ours."""
    state = getattr(error, "sqlstate", None) or ""
    text = _text(error)
    if isinstance(error, pg.UniqueViolation):
        return StoreConflict(text)
    if isinstance(error, pg.LockNotAvailable):
        return RowsLocked(text)
    if isinstance(error, pg.UndefinedTable | pg.UndefinedColumn):
        return SchemaError(f"{text}; run `windlass migrate`")
    # Only what is about the values sent is refused: a finish that is refused loses its content.
    if state[:2] in _ABOUT_CONTENT or isinstance(error, UnicodeError) or (not state and isinstance(error, psycopg.DataError)):
        return StoreRefused(text)
    return StoreUnavailable(text)
