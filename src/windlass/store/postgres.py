"""PostgreSQL: calls on connections of our own, or on the caller's."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.rows import tuple_row
from psycopg_pool import PoolTimeout, TooManyRequests

from windlass.errors import (
    CannotConnect,
    ConfigError,
    RowsLocked,
    SchemaError,
    StoreBusy,
    StoreConflict,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from windlass.store import other_drivers
from windlass.store.announcer import Announcer
from windlass.store.calls import work
from windlass.store.calls.call import STATEMENT_TIMEOUT, asked
from windlass.store.connections import (
    ConnectFailed,
    NoAnswer,
    WatchedAsyncConnection,
    WatchedConnection,
    lasting,
)
from windlass.store.fork_guard import ForkGuard
from windlass.store.listener import WakeupListener
from windlass.store.other_drivers import NOT_OURS, refuse_stranger
from windlass.store.pools import Pools, SyncPools, Terms
from windlass.store.queries import PARAMETER, Queries, queries
from windlass.store.socket_reader import SocketReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
    from datetime import timedelta
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
    """PostgreSQL for asyncio; connections are replaced by themselves after an outage."""

    dialect = "postgres"

    def __init__(
        self,
        dsn: str,
        *,
        prepare: bool = True,
        listen_dsn: str | None = None,
        statement_timeout: timedelta = STATEMENT_TIMEOUT,
    ) -> None:
        """Describe the connections; they open at first use.

        For transaction poolers: `prepare=False`, and as `listen_dsn` one that leads to the server itself.
        """
        self.dsn = dsn
        self._listen_dsn = listen_dsn or dsn
        self._announcer = Announcer(partial(_Notifier, dsn))
        self._pools = Pools(Terms(dsn, prepare, statement_timeout))
        self._identity: str | None = None
        self._owner = ForkGuard()

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        if call.announces_work and self._announcer.is_left_to_commit():
            began = time.monotonic()
            answer = await self._run(call, is_announced=True)
            self._announcer.committed(time.monotonic() - began)
        else:
            answer = await self._run(call)
            self._announcer.announce(call.wakes(answer))
        return answer

    async def _run(self, call: Call[T], *, is_announced: bool = False) -> T:
        cancels = _cancels()
        self._owner.check()
        for last in range(_TRIES):
            try:
                async with self._pools.connection(call) as connection:
                    # Before Python 3.12 the pool's wait swallows a cancellation that comes as the wait ends: the task that
                    # cancelled a loop of calls would wait for its end for ever.
                    if _cancels() > cancels:
                        raise asyncio.CancelledError
                    return await _drive_async(connection, call, is_announced=is_announced)
            except _AGAIN as error:
                if last == _TRIES - 1:
                    raise translated(error) from error
            except _FROM_DRIVER as error:
                raise translated(error) from error
        raise AssertionError

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; it is visible iff that commits."""
        if self._identity is None:
            self._identity = await self.run(work.identity())
        if not isinstance(connection, psycopg.AsyncConnection):
            return await other_drivers.run_within(connection, self._identity, call)
        try:
            await connection.execute(_BEGIN)
            async with connection.transaction():
                refuse_stranger(self._identity, await _drive_async(connection, work.identity()))
                answer = await _drive_async(connection, call)
                if topics := call.wakes(answer):
                    await connection.cursor(row_factory=tuple_row).execute(NOTIFY, [list(topics)])
                return answer
        except pg.UndefinedTable as error:
            raise ConfigError(NOT_OURS) from error
        except _FROM_DRIVER as error:
            raise translated(error) from error

    @asynccontextmanager
    async def listen(self, wakeups: SqlWakeups, rng: Random) -> AsyncIterator[None]:
        """Wake `wakeups` when a process announces a commit, on a connection of its own."""
        listener = WakeupListener(partial(_notices, self._listen_dsn), self._announcer.announce, rng)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listener.run(wakeups))
            yield
            listening.cancel()

    async def aclose(self) -> None:
        """Close the connections; waits a moment at most for what is under way."""
        await asyncio.gather(asyncio.to_thread(self._announcer.close), self._pools.close())


class SyncPostgres:
    """The same for code without an event loop."""

    dialect = "postgres"

    def __init__(self, dsn: str, *, prepare: bool = True, statement_timeout: timedelta = STATEMENT_TIMEOUT) -> None:
        """Describe the connections; they open at first use."""
        self.dsn = dsn
        self._announcer = Announcer(partial(_Notifier, dsn))
        self._pools = SyncPools(Terms(dsn, prepare, statement_timeout))
        self._identity: str | None = None
        self._owner = ForkGuard()

    def run_sync(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        if call.announces_work and self._announcer.is_left_to_commit():
            began = time.monotonic()
            answer = self._run(call, is_announced=True)
            self._announcer.committed(time.monotonic() - began)
        else:
            answer = self._run(call)
            self._announcer.announce(call.wakes(answer))
        return answer

    def _run(self, call: Call[T], *, is_announced: bool = False) -> T:
        self._owner.check()
        for last in range(_TRIES):
            try:
                with self._pools.connection(call) as connection:
                    return _drive(connection, call, is_announced=is_announced)
            except _AGAIN as error:
                if last == _TRIES - 1:
                    raise translated(error) from error
            except _FROM_DRIVER as error:
                raise translated(error) from error
        raise AssertionError

    def run_script(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run `work` with a connection inside one transaction, which may last; for migrations."""
        self._owner.check()
        try:
            with self._pools.script() as connection:
                return work(connection)
        except _FROM_DRIVER as error:
            raise translated(error) from error

    def run_on(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; it is visible iff that commits."""
        if self._identity is None:
            self._identity = self.run_sync(work.identity())
        if not isinstance(connection, psycopg.Connection):
            return other_drivers.run_on(connection, self._identity, call)
        try:
            return _run_on(connection, call, self._identity)
        except pg.UndefinedTable as error:
            raise ConfigError(NOT_OURS) from error
        except _FROM_DRIVER as error:
            raise translated(error) from error

    def close(self) -> None:
        """Close the connections; waits a moment at most for what is under way."""
        self._announcer.close()
        self._pools.close()


def run_on(connection: psycopg.Connection[Any], call: Call[T]) -> T:
    """Run a call on a caller's connection, whatever database that leads to; sleepers are woken when it commits."""
    try:
        return _run_on(connection, call)
    except _FROM_DRIVER as error:
        raise translated(error) from error


def _run_on(connection: psycopg.Connection[Any], call: Call[T], identity: str | None = None) -> T:
    connection.execute(_BEGIN)
    with connection.transaction():
        if identity is not None:
            refuse_stranger(identity, _drive(connection, work.identity()))
        answer = _drive(connection, call)
        if topics := call.wakes(answer):
            connection.cursor(row_factory=tuple_row).execute(NOTIFY, [list(topics)])
        return answer


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


class _Notifier:
    """Where announcements go: a connection of their own, made when it is needed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: WatchedConnection | None = None

    def send(self, words: Collection[str]) -> None:
        try:
            try:
                self._send(words)
            except psycopg.Error:
                # The connection may have been lost long ago, without an error so far.
                self.close()
                self._send(words)
        except psycopg.Error as error:
            self.close()
            raise translated(error) from error

    def _send(self, words: Collection[str]) -> None:
        if self._connection is None:
            self._connection = WatchedConnection.connect(**_speaking(self._dsn))
        self._connection.execute(NOTIFY, [list(words)])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@asynccontextmanager
async def _notices(dsn: str) -> AsyncIterator[Hear]:
    """Open a connection that receives announcements."""
    try:
        async with await WatchedAsyncConnection.connect(**_speaking(dsn)) as connection:
            await connection.execute(LISTEN)
            # From here on nothing arrives while no process announces anything; the listener tests it by itself.
            connection.limit_s = None
            reader = SocketReader(connection.fileno())
            try:
                yield partial(_hear, connection, reader)
            finally:
                reader.close()
    except psycopg.Error as error:
        raise translated(error) from error


def _speaking(dsn: str) -> dict[str, Any]:
    return lasting(dsn) | {"prepare_threshold": None}


async def _hear(connection: psycopg.AsyncConnection[Any], reader: SocketReader, seconds: float) -> list[str]:
    """Wait for announcements without the driver's own wait, which wakes ten times a second."""
    try:
        async with asyncio.timeout(seconds):
            while not (words := list(_words(connection))):
                await reader.readable()
    except TimeoutError:
        return []
    return words


def _words(connection: psycopg.AsyncConnection[Any]) -> Iterator[str]:
    connection.pgconn.consume_input()
    while (notice := connection.pgconn.notifies()) is not None:
        yield notice.extra.decode()


# One channel for all topics, so that any announcement proves to a listener that its connection works.
LISTEN = "listen windlass"
NOTIFY = "select pg_notify('windlass', word) from unnest(%s::text[]) as word"


# Any statement begins the caller's transaction; without one, our block would begin it and commit it at its end.
_BEGIN = "select 1"
# The last: a text that the driver cannot hand to the database.
_FROM_DRIVER = (psycopg.Error, PoolTimeout, TooManyRequests, UnicodeError)
# Another transaction was in the way; the same call may well succeed. A unique key taken between look and write is one of
# them: at the next look the call sees the winner.
_AGAIN = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation)


def _params(step: Step, *, is_announced: bool) -> dict[str, Any]:
    # A statement without a time looks at the server's clock.
    params = {"now": None, "is_announced": is_announced, **step.params}
    if step.columns is not None:
        params |= {name: _array(values) for name, values in step.columns.items()}
    return params


def _array(values: Sequence[Any]) -> str | None:
    """Write a column as the text of an array, which costs a fraction of what the driver takes for its values."""
    first = next((value for value in values if value is not None), None)
    if first is None:
        return None
    write = _quoted if isinstance(first, str) else str
    return "{" + ",".join(["null" if value is None else write(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def _drive_async(connection: psycopg.AsyncConnection[Any], call: Call[T], *, is_announced: bool = False) -> T:
    steps = call.begin()
    try:
        step = next(steps)
        while True:
            if step.ask is not None:
                step = steps.send(await _ask(connection, step.ask))
                continue
            cursor = connection.cursor(binary=True, row_factory=tuple_row)
            await cursor.execute(_texts.of(step), _params(step, is_announced=is_announced))
            step = steps.send(await cursor.fetchall())
    except StopIteration as done:
        value: T = done.value
        return value


async def _ask(connection: psycopg.AsyncConnection[Any], ask: Callable[[Any], Any]) -> list[Row]:
    answer = ask(connection)
    return [(await answer if inspect.isawaitable(answer) else answer,)]


def _drive(connection: psycopg.Connection[Any], call: Call[T], *, is_announced: bool = False) -> T:
    steps = call.begin()
    try:
        step = next(steps)
        while True:
            if step.ask is not None:
                step = steps.send(asked(step, connection))
                continue
            # Not by the connection's own factory: a caller's cursors may be of a kind that cannot read binary answers.
            cursor = psycopg.Cursor(connection, row_factory=tuple_row)
            cursor.format = psycopg.pq.Format.BINARY
            step = steps.send(cursor.execute(_texts.of(step), _params(step, is_announced=is_announced)).fetchall())
    except StopIteration as done:
        value: T = done.value
        return value


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
        return SchemaError(f"the database has no tables of Windlass, or older ones; run `windlass migrate` ({text})")
    # Only what is about the values sent is refused: a finish that is refused loses its content.
    if state[:2] in _ABOUT_CONTENT or isinstance(error, UnicodeError) or (not state and isinstance(error, psycopg.DataError)):
        return StoreRefused(text)
    return _unavailable(error, text)


def _unavailable(error: BaseException, text: str) -> StoreUnavailable:
    if isinstance(error, ConnectFailed):
        return CannotConnect(text)
    if isinstance(error, NoAnswer | pg.QueryCanceled | PoolTimeout):
        return StoreBusy(text)
    return StoreUnavailable(text)
