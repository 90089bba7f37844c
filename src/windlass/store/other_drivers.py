"""PostgreSQL: calls inside a caller's transaction through asyncpg, psycopg2 or pg8000, which Windlass itself does not use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from windlass.core.blocking import run
from windlass.errors import ConfigError, RowsLocked, StoreConflict, StoreError, StoreRefused, StoreUnavailable
from windlass.store.calls.call import Step, asked
from windlass.store.calls.work import identity as identify
from windlass.store.queries import PARAMETER, Queries, queries

if TYPE_CHECKING:
    from windlass.store.calls.call import Call
    from windlass.store.rows import Row

T = TypeVar("T")

NOT_OURS = "the connection is to another database than the store's"
_NOTIFY = "select pg_notify('windlass', word) from unnest(:words::text[]) as word"
_NO_TRANSACTION = "25P01"
_NO_TABLE = "42P01"
_UNIQUE = "23505"
_LOCKED = "55P03"
_ABOUT_CONTENT = ("22", "23", "54")
_CAST = re.compile(r"\s*::")
_DRIVERS = frozenset({"asyncpg", "pg8000", "psycopg2"})


class _Statement(NamedTuple):
    """What to send; parameters are written `:name`."""

    text: str
    params: Mapping[str, Any] = {}


_Work = Generator[_Statement | Step, "Sequence[Row]", T]
"""Statements to send and steps that ask the caller's code, each answered by its rows."""


def refuse_stranger(ours: str, theirs: str) -> None:
    """Raise ConfigError where the two name different databases."""
    if ours != theirs:
        raise ConfigError(f"{NOT_OURS} ({theirs!r}, not {ours!r})")


_Send = Callable[[Any, _Statement | Step], Coroutine[Any, Any, "Sequence[Row]"]]


async def run_within(connection: Any, identity: str, call: Call[T]) -> T:
    """Run a call inside the transaction of an asyncpg connection; outside of one it is committed at once."""
    return await _run(_sent_by_asyncpg, connection, identity, call)


def run_on(connection: Any, identity: str, call: Call[T]) -> T:
    """Do the same on a connection that blocks."""
    return run(_run(_sent_by_cursor, connection, identity, call))


async def _run(send: _Send, connection: Any, identity: str, call: Call[T]) -> T:
    work = _within(identity, call)
    with _translated_errors():
        try:
            step = next(work)
            while True:
                try:
                    rows = await send(connection, step)
                except BaseException as error:  # noqa: BLE001 - what was written so far is taken back
                    step = work.throw(error)
                else:
                    step = work.send(rows)
        except StopIteration as done:
            answer: T = done.value
            return answer


_Ending = tuple[str, tuple[str, ...]]
_SAVEPOINT: _Ending = ("release savepoint windlass", ("rollback to savepoint windlass", "release savepoint windlass"))
_OWN: _Ending = ("commit", ("rollback",))
"""How a call ends that is a savepoint, or a transaction of its own, and how it is undone."""


def _within(identity: str, call: Call[T]) -> _Work[T]:
    """Run a call so that an error leaves the caller's transaction as it was."""
    keep, undo = _SAVEPOINT
    try:
        # Some drivers begin the transaction with its first statement.
        yield _Statement("select 1")
        yield _Statement("savepoint windlass")
    except Exception as error:
        if _state(error) != _NO_TRANSACTION:
            raise
        # The connection commits by itself.
        keep, undo = _OWN
        yield _Statement("begin")
    try:
        refuse_stranger(identity, (yield from _steps(identify())))
        answer = yield from _steps(call)
        if topics := call.wakes(answer):
            yield _Statement(_NOTIFY, {"words": list(topics)})
    except BaseException:
        with suppress(Exception):
            for text in undo:
                yield _Statement(text)
        raise
    yield _Statement(keep)
    return answer


def _steps(call: Call[T]) -> _Work[T]:
    texts = queries("postgres")
    with closing(call.begin()) as steps:
        try:
            step = next(steps)
            while True:
                if step.ask is None:
                    rows = yield _Statement(*_filled(texts, step))
                else:
                    rows = yield step
                step = steps.send(rows)
        except StopIteration as done:
            answer: T = done.value
            return answer


def _filled(texts: Queries, step: Step) -> tuple[str, Mapping[str, Any]]:
    [text] = texts.statements(step.query, step.arms)
    columns = {name: list(values) for name, values in (step.columns or {}).items()}
    # A statement without a time looks at the server's clock.
    return text, {"now": None, "is_announced": False, **step.params, **columns}


async def _sent_by_asyncpg(connection: Any, step: _Statement | Step) -> Sequence[Row]:
    if isinstance(step, Step):
        answer = None if step.ask is None else step.ask(connection)
        return [(await answer if inspect.isawaitable(answer) else answer,)]
    text, values = _numbered(step)
    return [tuple(row) for row in await connection.fetch(text, *values)]


def _numbered(statement: _Statement) -> tuple[str, list[Any]]:
    """Write parameters as `$1`. asyncpg takes only what fits a parameter's type, so a text that is cast crosses as a text."""
    places: dict[str, int] = {}

    def place(match: re.Match[str]) -> str:
        name = match[1]
        number = places.setdefault(name, len(places) + 1)
        is_cast = _CAST.match(statement.text, match.end()) is not None
        return f"${number}::text" if is_cast and isinstance(statement.params[name], str) else f"${number}"

    text = PARAMETER.sub(place, statement.text)
    return text, [statement.params[name] for name in places]


async def _sent_by_cursor(connection: Any, step: _Statement | Step) -> Sequence[Row]:
    if isinstance(step, Step):
        return asked(step, connection)
    with closing(connection.cursor()) as cursor:
        if type(connection).__module__.startswith("pg8000"):
            names = PARAMETER.findall(step.text)
            cursor.execute(PARAMETER.sub("%s", step.text.replace("%", "%%")), [step.params[name] for name in names])
        else:
            cursor.execute(PARAMETER.sub(r"%(\1)s", step.text.replace("%", "%%")), dict(step.params))
        return [] if cursor.description is None else [tuple(row) for row in cursor.fetchall()]


def _state(error: BaseException) -> str:
    """Find the server's code of an error, wherever its driver keeps it."""
    found = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if found is None and error.args and isinstance(error.args[0], dict):
        found = error.args[0].get("C")
    return str(found or "")


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, StoreError) or not _is_drivers(error):
            raise
        raise _translated(error) from error


def _is_drivers(error: Exception) -> bool:
    return bool(_state(error)) or any(kind.__module__.partition(".")[0] in _DRIVERS for kind in type(error).__mro__)


def _translated(error: Exception) -> StoreError | ConfigError:
    state = _state(error)
    text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    if state == _NO_TABLE:
        return ConfigError(NOT_OURS)
    if state == _UNIQUE:
        return StoreConflict(text)
    if state == _LOCKED:
        return RowsLocked(text)
    return StoreRefused(text) if state[:2] in _ABOUT_CONTENT else StoreUnavailable(text)
