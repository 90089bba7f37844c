"""Examines the connection to PostgreSQL: whether a pooler stands between, of which kind, and whether wake-ups pass."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import psycopg

from windlass.store.connections import NoAnswer, WatchedConnection, lasting
from windlass.store.postgres import LISTEN, NOTIFY, translated

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT_S = 2.0
# A wake-up takes a millisecond; this is for a busy machine.
_HEAR_S = 1.0


class PostgresPath(NamedTuple):
    """What stands between this process and the server."""

    is_pooled: bool
    """Whether another program than the server answers."""
    shares_sessions: bool
    """Whether a session is another client's between two transactions: a pooler in transaction or statement mode."""
    heard_after_s: float | None
    """How long a wake-up took; None: it did not arrive."""


def try_path(dsn: str, listen_dsn: str) -> PostgresPath:
    """Connect as the store does, and once more as its listener does; nothing stays behind. Raises StoreError."""
    try:
        with _connected(dsn) as one, _connected(dsn) as other:
            is_pooled = one.info.backend_pid != _backend(one)
            shares_sessions = is_pooled and _shares(one, other)
            # A LISTEN would stay on a session that the pooler has given to another client.
            is_deaf = shares_sessions and listen_dsn == dsn
        return PostgresPath(is_pooled, shares_sessions, None if is_deaf else _heard_after_s(dsn, listen_dsn))
    except psycopg.Error as error:
        raise translated(error) from error


@contextmanager
def _connected(dsn: str) -> Iterator[WatchedConnection]:
    with WatchedConnection.connect(**lasting(dsn) | {"prepare_threshold": None}) as connection:
        connection.limit_s = _WAIT_S
        yield connection


def _backend(connection: WatchedConnection) -> int:
    found: Any = connection.execute("select pg_backend_pid()").fetchone()
    return int(found[0])


def _shares(one: WatchedConnection, other: WatchedConnection) -> bool:
    """Hold what was the first connection's session last: a pooler that lends sessions out must find it another one."""
    before = _backend(one)
    with other.transaction():
        if _backend(other) == before:
            return True
        try:
            return _backend(one) != before
        except NoAnswer:
            # There is no other session, so it waits for the one that it should have had.
            return True


def _heard_after_s(dsn: str, listen_dsn: str) -> float | None:
    word = f"doctor {uuid4().hex}"
    with _connected(dsn) as speaker, _connected(listen_dsn) as listener:
        listener.execute(LISTEN)
        began = time.monotonic()
        speaker.execute(NOTIFY, [[word]])
        while (left := began + _HEAR_S - time.monotonic()) > 0:
            listener.limit_s = None
            if any(notice.payload == word for notice in listener.notifies(timeout=left, stop_after=1)):
                return time.monotonic() - began
    return None
