"""The way to one database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from windlass.ports.store import Store

T = TypeVar("T")


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
        """Let go without closing, in the child of a fork."""
        ...
