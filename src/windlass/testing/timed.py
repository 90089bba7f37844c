"""A database whose clock is a test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from windlass.ports import Clock
from windlass.store import Store
from windlass.store.backend import Backend

T = TypeVar("T")


class TimedBackend:
    """Opens the stores of another backend, all on a test's time."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        """Open what `backend` opens."""
        self._backend = backend
        self._clock = clock

    @property
    def is_shared(self) -> bool:
        """Whether all its stores are one underneath."""
        return self._backend.is_shared

    def open_async(self) -> Store:
        """Open a store for the event loop that will use it."""
        return self._timed(self._backend.open_async())

    def open_blocking(self) -> Store:
        """Open a store whose coroutines never suspend."""
        return self._timed(self._backend.open_blocking())

    def _timed(self, store: Store) -> Store:
        return store.at(self._clock)

    def migrate(self) -> None:
        """Bring the schema up to date."""
        self._backend.migrate()

    def script(self, work: Callable[[Any], T]) -> T:
        """Run `work` with the blocking database underneath."""
        return self._backend.script(work)

    def close(self) -> None:
        """Close what all stores share, if they do."""
        self._backend.close()

    def forget(self) -> None:
        """Drop the connections without closing them, in the child of a fork."""
        self._backend.forget()
