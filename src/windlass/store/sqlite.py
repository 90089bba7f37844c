"""SQLite: one thread writes whole transactions, others read."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.core.topic import EVERYTHING, Topic
from windlass.errors import (
    ConfigError,
    SchemaError,
    StoreBusy,
    StoreConflict,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from windlass.store.batches import instant, microseconds
from windlass.store.calls.call import asked
from windlass.store.file_watch import FileWatch, open_watch
from windlass.store.fork_guard import ForkGuard
from windlass.store.queries import PARAMETER, Queries, queries
from windlass.store.rows import SHAPES
from windlass.store.sqlite_library import VARIABLE, driver
from windlass.store.wakeups import CommitListeners, listeners_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from random import Random

    from windlass.store.calls.call import Call, Step
    from windlass.store.rows import Row
    from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")
log = logging.getLogger("windlass.store")

_Work = tuple["Callable[[Any], Any]", "Future[Any]"]

OLDEST = (3, 38, 0)
_BUSY_SECONDS = 30.0
_MOST_MERGED = 64
# How often to look for commits of other processes: an idle worker starts a job about half of this after its commit. After a
# while without any it saves power.
_LOOK_SECONDS = 0.004
_SLOW_LOOK_SECONDS = 0.012
_QUIET_SECONDS = 2.0
# A commit does not show its topic. All sleepers are woken at once when there has been none for a while; after that only the
# workers that claim, and the others this often: beside a busy process each of its commits made this one promote, and renew all
# its leases, which are commits that wake the other one.
_OTHERS_SECONDS = 0.1
_CLAIMERS = frozenset({Topic.WORK})
# Where inotify reports writes: a commit shows some time after its write, when it is on the disk. The looks after a write come
# ever later, and end once no writer is found at work; the rest is for what the system may not have reported.
_FIRST_LOOK_SECONDS = 0.001
_LONGEST_LOOK_SECONDS = 0.256
_WATCHED_LOOK_SECONDS = 2.0
# Not earlier: to find out, the writers' lock is taken for a moment, and a file that is written to without pause is left alone.
_QUIET_LOOK_SECONDS = 0.004
# How many steps of SQLite's machine, about a millisecond, lie between two looks at a read's deadline. Each look waits for
# Python's lock.
_STEPS_BETWEEN_LOOKS = 100_000


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """Whether this SQLite can lose committed pages of a WAL file that several processes write."""
    return (3, 7, 0) <= version <= (3, 51, 2) and version not in {(3, 50, 7), (3, 44, 6)}


def fixed_build() -> str:
    """How this process gets a SQLite without the bug."""
    return "use a Python with SQLite 3.51.3 or later" if driver.is_prescribed else "install windlass[sqlite] for a fixed build"


class Sqlite:
    """A database file, or a private database in memory when the path is `:memory:`."""

    dialect = "sqlite"

    def __init__(self, path: str, rng: Random) -> None:
        """Open the file and start its threads."""
        if driver.sqlite_version_info < OLDEST:
            raise ConfigError(f"SQLite {driver.sqlite_version} is too old; {'.'.join(map(str, OLDEST))} is the oldest supported")
        self.path = path
        self.queries = queries("sqlite")
        self._rng = rng
        self._listeners = listeners_of(path)
        self._writer = _ConnectionThread(self, rng, "writer")
        self._engine_reader, self._reader, self._bounded_reader = self._open_readers()

    def _open_readers(self) -> tuple[_ConnectionThread, _ConnectionThread, _ConnectionThread]:
        # A database in memory belongs to one connection.
        if self.path == ":memory:":
            return self._writer, self._writer, self._writer
        return (
            _ConnectionThread(self, self._rng, "engine-reader"),
            _ConnectionThread(self, self._rng, "reader"),
            _ConnectionThread(self, self._rng, "bounded-reader"),
        )

    def _reader_of(self, call: Call[T]) -> _ConnectionThread:
        """Choose a thread so that the engine waits for no other reader, and what reads little for none that reads much."""
        if call.is_engine or call.is_urgent:
            return self._engine_reader
        return self._reader if call.timeout is None else self._bounded_reader

    def submit(self, call: Call[T]) -> Future[T]:
        """Queue a call; the future ends after the commit."""
        if call.is_read:
            return self._reader_of(call).submit(call)
        future = self._writer.submit(call)
        future.add_done_callback(partial(self._announce, call))
        return future

    def _announce(self, call: Call[T], future: Future[T]) -> None:
        if self._listeners.has_any and not future.cancelled() and future.exception() is None:
            self._listeners.notify(call.wakes(future.result()))

    @asynccontextmanager
    async def listen(self, wakeups: SqlWakeups, rng: Random) -> AsyncIterator[None]:
        """Wake `wakeups` at every commit, of this process or of another."""
        del rng
        with self._listeners.calling(wakeups.wake), self._writer.other_writers.calling(wakeups.wake):
            self._writer.nudge()
            wakeups.is_listening = True
            wakeups.wake(EVERYTHING)
            yield

    async def run(self, call: Call[T]) -> T:
        """Run a call without holding up the event loop."""
        return await asyncio.wrap_future(self.submit(call))

    def run_sync(self, call: Call[T]) -> T:
        """Run a call and wait for it."""
        return self.submit(call).result()

    def run_script(self, work: Callable[[Any], T]) -> T:
        """Run `work` with the writer's connection inside one transaction; for migrations."""
        return self._writer.submit_work(work).result()

    def run_on(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; it is visible iff that commits.

        A connection in autocommit mode without an open transaction commits at once, as it does with everything else.
        """
        self._check_connection(connection)
        return run_on(connection, call, self._rng)

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Do the same from asyncio; the connection is the caller's and blocks as it always does, unless it is aiosqlite's."""
        if not is_aiosqlite(connection):
            return self.run_on(connection, call)
        # On the thread of the connection, where its other statements run; SQLAlchemy reaches it the same way.
        answer: T = await connection._execute(self.run_on, connection._conn, call)  # noqa: SLF001
        return answer

    def _check_connection(self, connection: Any) -> None:
        check_driver(connection)
        main = next((row[2] for row in _cursor(connection).execute("pragma database_list") if row[1] == "main"), "")
        if self.path == ":memory:" or not main or Path(main).resolve() != Path(self.path).resolve():
            raise ConfigError(f"the connection is to {main or 'a database in memory'}, not to {self.path}")

    def close(self) -> None:
        """Finish what is queued and close the connections."""
        for thread in dict.fromkeys((self._writer, self._engine_reader, self._reader, self._bounded_reader)):
            thread.close()

    async def aclose(self) -> None:
        """Close without holding up the event loop."""
        await asyncio.to_thread(self.close)


def check_driver(connection: Any) -> None:
    """Raise ConfigError for a connection of another SQLite library than this process uses."""
    if not isinstance(connection, driver.Connection):
        given = f"{type(connection).__module__}.{type(connection).__name__}"
        remedy = "open it with windlass.sqlite_driver, as in create_engine(url, module=windlass.sqlite_driver)"
        if given.startswith("sqlite3."):
            # Each copy of SQLite drops the other's file locks when it closes the file.
            remedy += (
                f", set {VARIABLE}=sqlite3, or make the application with windlass.sqlalchemy.windlass_on(engine): "
                "two SQLite libraries in one process can corrupt the file"
            )
        raise ConfigError(f"a connection of {driver.__name__} is needed, not {given}; {remedy}")


def run_on(connection: Any, call: Call[T], rng: Random) -> T:
    """Run a call inside the transaction of a caller's connection, or in one of its own where that one is in autocommit mode."""
    is_autocommit = not connection.in_transaction and _commits_by_itself(connection)
    try:
        if not connection.in_transaction:
            # A read waits for no writer.
            connection.execute("begin" if call.is_read else "begin immediate")
        answer = _run_in_savepoint(connection, call)
        if is_autocommit:
            # With a rollback journal the commit itself is refused while another process reads.
            repeat_while_busy(lambda: connection.execute("commit"), rng)
    except BaseException as error:
        if is_autocommit:
            _roll_back(connection)
        if isinstance(error, _FROM_DRIVER):
            raise _translated(error) from error
        raise
    return answer


def _run_in_savepoint(connection: Any, call: Call[T]) -> T:
    connection.execute("savepoint windlass")
    try:
        return _drive(connection, queries("sqlite"), call)
    except BaseException:
        connection.execute("rollback to windlass")
        raise
    finally:
        connection.execute("release windlass")


class _ConnectionThread:
    """A connection and the thread that alone uses it."""

    def __init__(self, database: Sqlite, rng: Random, role: str) -> None:
        self._queries = database.queries
        self._is_writer = role == "writer"
        self._rng = rng
        self._urgent: deque[_Work] = deque()
        self._normal: deque[_Work] = deque()
        self._wake = threading.Condition()
        self.other_writers = CommitListeners()
        self._watch: FileWatch | None = None
        self._pause = _FIRST_LOOK_SECONDS
        """How long to wait for the next look, where the file is watched."""
        self._version: int | None = None
        self._next_look = 0.0
        self._last_news = 0.0
        self._others_at = 0.0
        """When those who do not claim may be woken again."""
        self._are_others_due = False
        self._closing = False
        self._path = database.path
        self._file: tuple[int, int] | None = None
        self._owner = ForkGuard()
        opened: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._live, args=(database.path, opened), name=f"windlass-sqlite-{role}", daemon=True
        )
        self._thread.start()
        opened.result()

    def submit(self, call: Call[T]) -> Future[T]:
        # Only reads: an interrupted write takes with it everything that shares its transaction.
        if call.is_read and call.timeout:
            return self._put(partial(_drive_within, self._queries, call, _Deadline(call.timeout)), is_urgent=call.is_urgent)
        return self._put(lambda connection: _drive(connection, self._queries, call), is_urgent=call.is_urgent)

    def submit_work(self, work: Callable[[Any], T]) -> Future[T]:
        return self._put(work, is_urgent=False)

    def _put(self, work: Callable[[Any], T], *, is_urgent: bool) -> Future[T]:
        self._owner.check()
        future: Future[T] = Future()
        with self._wake:
            if self._closing:
                raise StoreUnavailable("the store is closed")
            (self._urgent if is_urgent else self._normal).append((work, future))
            self._wake.notify()
        return future

    def nudge(self) -> None:
        """Begin to look for commits of other processes, if there is a listener."""
        with self._wake:
            self._wake.notify()

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _file_changed(self) -> None:
        """Look soon, on the thread of the connection: the file was written to."""
        with self._wake:
            self._pause = _FIRST_LOOK_SECONDS
            self._wake.notify()

    def _live(self, path: str, opened: Future[None]) -> None:
        try:
            connection = self._again(lambda: _connect(path))
        except BaseException as error:  # noqa: BLE001 - handed to the opener
            opened.set_exception(_translated(error))
            return
        self._file = None if path == ":memory:" else _identity(path)
        opened.set_result(None)
        try:
            while (group := self._take()) is not None:
                if group:
                    self._serve(connection, group)
                if self.other_writers.has_any and (not group or time.monotonic() >= self._next_look):
                    self._look(connection)
        finally:
            if self._watch is not None:
                self._watch.close()
            connection.close()
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Fail the calls that wait for a thread that has ended."""
        with self._wake:
            self._closing = True
            waiting = [future for line in (self._urgent, self._normal) for _, future in line]
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(StoreUnavailable("the store is closed"))

    def _take(self) -> list[_Work] | None:
        """Wait for work and take what has gathered, the urgent first; None means the store is closing.

        Nothing at all is taken when it is time to look for what others have done.
        """
        with self._wake:
            while True:
                group: list[_Work] = []
                for line in (self._urgent, self._normal):
                    while line and len(group) < _MOST_MERGED:
                        work, future = line.popleft()
                        # A caller that gave up while it waited is left out.
                        if future.set_running_or_notify_cancel():
                            group.append((work, future))
                if group:
                    return group
                if self._closing:
                    return None
                pause = self._pause
                is_woken = self._wake.wait(self._time_to_look() if self.other_writers.has_any else None)
                if not is_woken or self._pause < pause:
                    return group

    def _time_to_look(self) -> float:
        if self._are_others_due:
            return min(self._time_to_compare(), max(0.0, self._others_at - time.monotonic()))
        return self._time_to_compare()

    def _time_to_compare(self) -> float:
        if self._watch is not None and self._watch.is_alive:
            return self._pause
        is_quiet = time.monotonic() - self._last_news > _QUIET_SECONDS
        return _SLOW_LOOK_SECONDS if is_quiet else _LOOK_SECONDS

    def _look(self, connection: Any) -> None:
        """Wake if another connection has committed since the last look.

        On the writer's connection, which does not count its own commits, and always against the look before: a commit between
        two looks cannot be missed, whatever was claimed meanwhile.
        """
        if self._version is None and self._watch is None and self._file is not None:
            # The file is there: this connection has begun, and none other can be the last to close. There is none with a
            # rollback journal, where commits are written to the database itself.
            self._watch = open_watch(f"{self._path}-wal", self._file_changed) or open_watch(self._path, self._file_changed)
        with self._wake:
            # The watch may shorten it at the same moment, also from here on: what it has seen is then not what is looked at now.
            self._pause = pause = min(2 * self._pause, _LONGEST_LOOK_SECONDS)
        self._next_look = time.monotonic() + _LOOK_SECONDS
        # With a rollback journal the file may be locked; the next look will show it.
        with suppress(driver.Error):
            self._compare(connection)
            if self._watch is not None and pause >= _QUIET_LOOK_SECONDS:
                self._compare_alone(connection)
                with self._wake:
                    if self._pause == pause:
                        self._pause = _WATCHED_LOOK_SECONDS
        if self._are_others_due and time.monotonic() >= self._others_at:
            self._ring_for_all()

    def _compare(self, connection: Any) -> None:
        [[version]] = connection.execute("pragma data_version").fetchall()
        if version != self._version:
            self._version = version
            self._last_news = time.monotonic()
            self._are_others_due = time.monotonic() < self._others_at
            if self._are_others_due:
                self.other_writers.notify(_CLAIMERS)
            else:
                self._ring_for_all()

    def _ring_for_all(self) -> None:
        self._are_others_due = False
        self._others_at = time.monotonic() + _OTHERS_SECONDS
        self.other_writers.notify(EVERYTHING)

    def _compare_alone(self, connection: Any) -> None:
        """Look under the write lock: everything written by now shows. Raises the driver's error while another process writes."""
        connection.execute("begin immediate")
        try:
            self._compare(connection)
        finally:
            _roll_back(connection)

    def _serve(self, connection: Any, group: list[_Work]) -> None:
        """Run the group in one transaction, each in a savepoint of its own, and answer after the commit."""
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            self._again(lambda: self._begin(connection))
            for work, future in group:
                answers.append((future, *_attempt(connection, work, alone=len(group) == 1)))
            if len(group) == 1 and answers[0][2] is not None:
                _roll_back(connection)
            else:
                # With a rollback journal the commit itself is refused while another process reads.
                self._again(lambda: connection.execute("commit"))
        except BaseException as error:  # noqa: BLE001 - every caller of the group gets it
            _roll_back(connection)
            answers = [(future, None, error) for _, future in group]
        for future, result, problem in answers:
            if problem is None:
                future.set_result(result)
            else:
                future.set_exception(_translated(problem))

    def _begin(self, connection: Any) -> None:
        _roll_back(connection)
        self._check_file()
        if self._is_writer:
            connection.execute("begin immediate")
        else:
            # With a rollback journal it is the first read that finds the file locked; here it may be repeated.
            connection.execute("begin")
            connection.execute("select 1 from sqlite_master limit 1").fetchone()

    def _check_file(self) -> None:
        """Refuse to go on in a file that was removed or replaced: no process would read what is written to it."""
        if self._file is not None and _identity(self._path) != self._file:
            raise StoreUnavailable(f"the database file {self._path} was removed or replaced; restart this process")

    def _again(self, action: Callable[[], Any]) -> Any:
        return repeat_while_busy(action, self._rng)


def repeat_while_busy(action: Callable[[], Any], rng: Random) -> Any:
    """Repeat what finds the file locked. SQLite's own waiting starved single processes for seconds."""
    give_up = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return action()
        except driver.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > give_up:
                raise
        time.sleep(rng.uniform(0.0005, 0.003))


def is_aiosqlite(connection: object) -> bool:
    """Whether it is a connection that has another one on a thread of its own."""
    return any(kind.__module__.partition(".")[0] == "aiosqlite" for kind in type(connection).__mro__)


def _identity(path: str) -> tuple[int, int] | None:
    """Return which file it is that has this name; None when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - at every transaction, so as cheap as it can be
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _commits_by_itself(connection: Any) -> bool:
    """Whether a statement outside a transaction is committed at once, by either of the driver's two settings."""
    # Before Python 3.12 there is only the older one; where the newer is set, the driver does not look at the older.
    autocommit = getattr(connection, "autocommit", None)
    return autocommit if isinstance(autocommit, bool) else connection.isolation_level is None


def _roll_back(connection: Any) -> None:
    # After some errors SQLite has done it already, and asking again would hide the first error behind another.
    if connection.in_transaction:
        with suppress(driver.Error):
            connection.execute("rollback")


def _attempt(connection: Any, work: Callable[[Any], Any], *, alone: bool) -> tuple[Any, BaseException | None]:
    if not alone:
        connection.execute("savepoint one")
    try:
        result, problem = work(connection), None
    except Exception as error:
        if not connection.in_transaction:
            raise
        result, problem = None, error
    if not alone:
        if problem is not None:
            connection.execute("rollback to one")
        connection.execute("release one")
    return result, problem


def _connect(path: str) -> Any:
    connection = driver.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=0)
    try:
        _set_up(connection, path)
    except BaseException:
        # A busy file is tried again, with a connection of its own each time.
        connection.close()
        raise
    return connection


def _set_up(connection: Any, path: str) -> None:
    is_new = not connection.execute("pragma schema_version").fetchone()[0]
    if path != ":memory:":
        _set_journal(connection, path, is_new=is_new)
    connection.execute("pragma synchronous = full")
    connection.execute("pragma cache_size = -16384")
    connection.execute("pragma temp_store = memory")


def _set_journal(connection: Any, path: str, *, is_new: bool) -> None:
    """Choose the journal of a new file; the mode of an existing one is its owner's."""
    is_affected = has_wal_reset_bug(driver.sqlite_version_info)
    mode = connection.execute("pragma journal_mode").fetchone()[0]
    if is_new and mode != "wal" and not is_affected:
        connection.execute("pragma journal_mode = wal").fetchone()
    elif is_affected:
        _warn_once(path, mode, is_new=is_new)


_warned: set[str] = set()


def _warn_once(path: str, mode: str, *, is_new: bool) -> None:
    if path in _warned:
        return
    _warned.add(path)
    if mode == "wal":
        log.warning("SQLite %s has the WAL-reset bug and %s uses WAL; %s", driver.sqlite_version, path, fixed_build())
    else:
        # Slower, and safe. Another build changes only what files begin with, and only where this process may use it.
        level = logging.WARNING if is_new and not driver.is_prescribed else logging.INFO
        log.log(
            level, "SQLite %s has the WAL-reset bug: %s keeps a rollback journal; %s", driver.sqlite_version, path, fixed_build()
        )


def _drive(connection: Any, texts: Queries, call: Call[T]) -> T:
    """Run the steps of a call on a connection that is inside a transaction."""
    steps = call.begin()
    try:
        step = next(steps)
        while True:
            step = steps.send(_run_step(connection, texts, step))
    except StopIteration as done:
        value: T = done.value
        return value


class _Deadline:
    """When a read must have ended, counted from when it was asked for."""

    def __init__(self, timeout: timedelta) -> None:
        self._timeout_s = timeout.total_seconds()
        self._ends_at = time.monotonic() + self._timeout_s

    def is_past(self) -> bool:
        return time.monotonic() >= self._ends_at

    def missed(self) -> StoreBusy:
        return StoreBusy(f"the read took longer than {self._timeout_s:g} s")


def _drive_within(texts: Queries, call: Call[T], deadline: _Deadline, connection: Any) -> T:
    """Run the steps of a read; raises StoreBusy when its time is over."""
    if deadline.is_past():
        raise deadline.missed()
    connection.set_progress_handler(deadline.is_past, _STEPS_BETWEEN_LOOKS)
    try:
        return _drive(connection, texts, call)
    except driver.OperationalError as error:
        if _INTERRUPTED in str(error):
            raise deadline.missed() from error
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _run_step(connection: Any, texts: Queries, step: Step) -> Sequence[Row]:
    if step.ask is not None:
        return asked(step, connection)
    arms = step.arms if step.columns is None else _padded_rows(step.columns)
    statements = texts.statements(step.query, arms)
    params = {name: _plain(value) for name, value in step.params.items()}
    if step.columns is not None:
        for name, values in step.columns.items():
            params.update(zip_longest(_names(name, arms), values))
    if params.get("now") is None:
        # Inside the transaction, on the machine that holds the file: this is the database's clock.
        params["now"] = time.time_ns() // 1000  # noqa: TID251
    cursor = _cursor(connection)
    if step.query in _NUMBERING:
        params["last_id"] = _last_id(cursor)
    shape = SHAPES.get(step.query)
    if step.columns is None:
        rows = run_statements(cursor, statements, params, packed=0 if shape is None else shape.packed)
    else:
        rows = _run_by_place(cursor, statements, params)
    return rows if shape is None else [_typed(row, shape.instants, shape.booleans) for row in rows]


_NUMBERING = frozenset({"insert_jobs", "insert_plain"})
"""Queries that count on from the last job's number."""
_ROWS = (1, 4, 16, 64, 200, 500, 1000)
"""How many rows a `values` list has: few different texts, so that they stay prepared."""


def _padded_rows(columns: Mapping[str, Sequence[Any]]) -> int:
    longest = max(map(len, columns.values()))
    return next(rows for rows in _ROWS if rows >= longest)


@lru_cache(maxsize=256)
def _names(column: str, rows: int) -> tuple[str, ...]:
    """Name the parameters of a column."""
    return tuple(f"{column}_{place}" for place in range(rows))


def _run_by_place(cursor: Any, statements: Sequence[str], params: dict[str, Any]) -> Sequence[Row]:
    """Run statements with very many parameters: SQLite looks a name up by going through all of them, a place at once."""
    for statement in statements:
        text, values_of = _by_place(statement)
        cursor.execute(text, values_of(params))
    return cursor.fetchall()  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _by_place(statement: str) -> tuple[str, Callable[[dict[str, Any]], Sequence[Any]]]:
    """Write a statement without names; the second part puts its values in order."""
    names = PARAMETER.findall(statement)
    if len(names) > 1:
        return PARAMETER.sub("?", statement), itemgetter(*names)
    return PARAMETER.sub("?", statement), lambda params: [params[name] for name in names]


def run_statements(cursor: Any, statements: Sequence[str], params: dict[str, Any], *, packed: int = 0) -> Sequence[Row]:
    """Run the statements of a query; what one but the last finds, the next may use by its column's name.

    The answer is what the last one returns, or what another has found as one text, `rows_found`.
    """
    *first, last = statements
    for statement in first:
        cursor.execute(statement, params)
        if cursor.description is not None and (row := cursor.fetchone()) is not None:
            params |= {column[0]: value for column, value in zip(cursor.description, row, strict=True)}
    if "rows_found" in params:
        cursor.execute(last, params)
        return json.loads(params["rows_found"])  # type: ignore[no-any-return]
    if not packed:
        return cursor.execute(last, params).fetchall()  # type: ignore[no-any-return]  # the driver has no types
    [[text]] = cursor.execute(_packed(last, packed), params).fetchall()
    return json.loads(text)  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _packed(statement: str, width: int) -> str:
    """Make the answer one value. The driver takes Python's lock again for every row, and waits for it while handlers run."""
    columns = ", ".join(f"c{place}" for place in range(width))
    return f"with packed ({columns}) as ({statement}) select json_group_array(json_array({columns})) from packed"  # noqa: S608


def _cursor(connection: Any) -> Any:
    cursor = connection.cursor()
    # The connection may be a caller's, with rows of its own kind.
    cursor.row_factory = None
    return cursor


def _last_id(cursor: Any) -> int:
    found = cursor.execute("select seq from sqlite_sequence where name = 'windlass_jobs'").fetchone()
    return found[0] if found else 0


def _plain(value: Any) -> Any:
    return microseconds(value) if isinstance(value, datetime | timedelta) else value


def _typed(row: Row, instants: tuple[int, ...], booleans: tuple[int, ...]) -> Row:
    if not instants and not booleans:
        return row
    values = list(row)
    for place in instants:
        if values[place] is not None:
            values[place] = instant(values[place])
    for place in booleans:
        values[place] = bool(values[place])
    return tuple(values)


# The last two: a text or a number that the driver cannot hand to the database.
_FROM_DRIVER = (driver.Error, UnicodeError, OverflowError)


_INTERRUPTED = "interrupted"


def _is_busy(error: BaseException) -> bool:
    text = str(error)
    return "locked" in text or "busy" in text


def _translated(error: BaseException) -> BaseException:
    if not isinstance(error, _FROM_DRIVER):
        return error
    text = str(error)
    translated: StoreError
    if isinstance(error, driver.IntegrityError) and "UNIQUE" in text:
        translated = StoreConflict(text)
    elif any(word in text for word in _ABOUT_SCHEMA):
        # SQLite makes this table with the first that needs it, so it is missing where all of ours are.
        translated = SchemaError(f"{text.replace('sqlite_sequence', 'windlass_jobs')}; run `windlass migrate`")
    elif _is_busy(error):
        translated = StoreUnavailable(text)
    elif any(word in text for word in _ABOUT_FILE):
        # Not about what was sent: a finish that is refused loses its content.
        translated = StoreUnavailable(f"{text}: the database file is damaged; see `windlass doctor`, and restore a backup")
    elif not isinstance(error, driver.OperationalError) or any(word in text for word in _ABOUT_CONTENT):
        translated = StoreRefused(text)
    else:
        translated = StoreUnavailable(text)
    translated.__cause__ = error
    return translated


_ABOUT_SCHEMA = ("no such table: windlass", "no such table: sqlite_sequence", "no such column", "no such index")
_ABOUT_FILE = ("disk image is malformed", "file is not a database")
# SQLite's messages about a value it refuses; its other operational errors are about the file.
_ABOUT_CONTENT = ("JSON", "too big", "overflow")
