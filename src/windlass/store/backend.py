"""Opens the stores of one database, for event loops and for blocking code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Protocol, TypeVar

from windlass.core.retry import Profile
from windlass.errors import ConfigError, StoreError
from windlass.store import LISTEN_ELSEWHERE, Store, migrate, open_blocking_store, open_database, open_store
from windlass.store.blocking import Blocking
from windlass.store.calls import schema
from windlass.store.calls.call import STATEMENT_TIMEOUT, Means
from windlass.store.migrate import Scriptable

T = TypeVar("T")

NO_DATABASE = "none:"
"""The URL of a process that has no database on purpose."""


class Backend(Protocol):
    """Opens stores of one database."""

    @property
    def is_shared(self) -> bool:
        """Whether all its stores are one underneath, so that closing one closes all."""
        ...

    def open_async(self) -> Store:
        """Open a store for the event loop that will use it."""
        ...

    def open_blocking(self) -> Store:
        """Open a store whose coroutines never suspend."""
        ...

    def migrate(self) -> None:
        """Bring the schema up to date."""
        ...

    def script(self, work: Callable[[Any], T]) -> T:
        """Run `work` with the blocking database underneath, for what changes more than rows."""
        ...

    def close(self) -> None:
        """Close what all stores share, if they do."""
        ...

    def forget(self) -> None:
        """Drop the connections without closing them, in the child of a fork."""
        ...


def open_backend(
    url: str,
    *,
    rng: Random,
    profiles: Mapping[str, Profile],
    statement_timeout: timedelta = STATEMENT_TIMEOUT,
    listen_url: str | None = None,
) -> Backend:
    """Choose the backend of a URL; nothing is opened yet."""
    if url == NO_DATABASE:
        raise ConfigError("this process has no database; enqueue and ask over HTTP, with windlass.remote")
    if url.startswith("sqlite:"):
        if listen_url is not None:
            raise ConfigError(LISTEN_ELSEWHERE)
        return SqliteBackend(url, rng, profiles)
    return PostgresBackend(url, rng, profiles, statement_timeout=statement_timeout, listen_url=listen_url)


def _is_current(opened: Any) -> bool:
    """Whether a file has exactly the tables of this version; what is wrong otherwise is found by the migration."""
    try:
        opened.run_sync(schema.check(opened.dialect))
    except StoreError:
        return False
    return True


class SqliteBackend:
    """One file for all: its writer merges what event loops and threads send. Migrates itself."""

    is_shared = True

    def __init__(self, url: str, rng: Random, profiles: Mapping[str, Profile]) -> None:
        """Open nothing yet."""
        self._url, self._rng, self._profiles = url, rng, profiles
        self._lock = threading.Lock()
        self._database: Any = None

    def open_async(self) -> Store:
        """Open a store for any event loop."""
        return Store(self._open(), Means(self._rng, self._profiles))

    def open_blocking(self) -> Store:
        """Open a store whose coroutines never suspend."""
        return Store(Blocking(self._open()), Means(self._rng, self._profiles))

    def _open(self) -> Any:
        with self._lock:
            if self._database is None:
                opened: Any = open_database(self._url, rng=self._rng)
                # Looked at before it is locked: a caller that opens it inside its own transaction would wait for itself.
                if not _is_current(opened):
                    migrate.up(opened)
                self._database = opened
            return self._database

    def migrate(self) -> None:
        """Open the file, which does it."""
        self.script(lambda _: None)

    def script(self, work: Callable[[Scriptable], T]) -> T:
        """Run `work` on the file; one that was not open is closed again."""
        was_open = self._database is not None
        try:
            return work(self._open())
        finally:
            if not was_open:
                self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def forget(self) -> None:
        """Leave the file to the parent; a database in memory stays, and refuses to be used."""
        self._lock = threading.Lock()
        if self._url != "sqlite://":
            _inherited.append(self._database)
            self._database = None


class PostgresBackend:
    """A pool for each event loop, which cannot share one, and one for all blocking code."""

    is_shared = False

    def __init__(
        self,
        url: str,
        rng: Random,
        profiles: Mapping[str, Profile],
        *,
        statement_timeout: timedelta,
        listen_url: str | None = None,
    ) -> None:
        """Open nothing yet."""
        self._url, self._rng, self._profiles, self._statement_timeout = url, rng, profiles, statement_timeout
        self._listen_url = listen_url

    def open_async(self) -> Store:
        """Describe a pool; it connects at first use."""
        return open_store(
            self._url,
            rng=self._rng,
            profiles=self._profiles,
            statement_timeout=self._statement_timeout,
            listen_url=self._listen_url,
        )

    def open_blocking(self) -> Store:
        """Describe a blocking pool; it connects at first use."""
        return open_blocking_store(self._url, rng=self._rng, profiles=self._profiles, statement_timeout=self._statement_timeout)

    def migrate(self) -> None:
        """Apply what is missing."""
        self.script(migrate.up)

    def script(self, work: Callable[[Scriptable], T]) -> T:
        """Run `work` on a connection of its own."""
        database: Any = open_database(self._url, rng=self._rng)
        try:
            return work(database)
        finally:
            database.close()

    def close(self) -> None:
        """Nothing is shared."""

    def forget(self) -> None:
        """Nothing is shared."""


_inherited: list[object] = []
"""Kept in a forked child: closing a file here would drop the parent's locks on it."""
