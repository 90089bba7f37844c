"""Connections to PostgreSQL that wait for an answer only so long, and the results of the attempts to make them."""

from __future__ import annotations

import asyncio
import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolTimeout

from windlass.errors import shown
from windlass.store.socket_reader import READ, Resumed, SocketReader
from windlass.store.watchdog import Wait, watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_S = 5
# For the pool's own statements: setting a connection up, checking that it works.
SETUP_S = 5.0
# For a statement that is not waited for any more: the driver asks the server to cancel it and waits for the answer.
_CANCEL_S = 1.0


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

    limit_s: float | None = SETUP_S
    """How long one statement may take; None is for ever."""
    is_silent = False
    """Whether it was given up because no answer came."""
    bound_ms: int | None = None
    """The statement timeout that the server's session has, as far as we set it."""
    wait_now: Wait | None = None
    kept_until = 0.0
    """Until when it may be kept outside its pool."""

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

    limit_s: float | None = SETUP_S
    is_silent = False
    bound_ms: int | None = None
    wait_now: Wait | None = None
    kept_until = 0.0
    reader: SocketReader | None = None
    """Waits for it while it is outside its pool, which may close it at any time."""

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

    async def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for the server as long as the limit allows."""
        try:
            with _limited(self):
                if self.reader is None:
                    return await super().wait(gen, *args, **options)
                return await self._wait_by(self.reader, gen)
        except _Abandoned:
            raise asyncio.CancelledError from None

    async def _wait_by(self, reader: SocketReader, steps: Any) -> Any:
        """Drive the driver's own steps; what is not an everyday wait is left to the driver."""
        interrupted: BaseException | None = None
        try:
            waits_for = next(steps)
            try:
                while ready := (await reader.readable() if waits_for == READ else reader.ready_now()):
                    waits_for = steps.send(ready)
            except asyncio.CancelledError as error:
                interrupted = error
        except StopIteration as done:
            return done.value
        reader.close()
        return await super().wait(Resumed(steps, waits_for, interrupted))  # type: ignore[arg-type]  # it only goes on

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
