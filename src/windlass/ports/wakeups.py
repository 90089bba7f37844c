"""Hints that it is worth looking at the database before the next poll."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self

from windlass.core.topic import Topic


class Wakeups(Protocol):
    """Hints, never promises: a missing one costs a poll interval, a needless one a cheap query.

    To sleep without missing one: note the generation, look at the database, and if there was nothing, wait with what was
    noted. A wake-up that comes while you look ends the wait at once. Used from one event loop.
    """

    @property
    def is_listening(self) -> bool:
        """Whether wake-ups arrive; while they do not, only polling finds what others do."""
        ...

    async def __aenter__(self) -> Self:
        """Begin to listen, without waiting for the database; everything is woken once listening works.

        It may be entered again while it listens; the last that leaves ends it.
        """
        ...

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop listening."""
        ...

    def subscribe(self, wake: Callable[[Topic], None]) -> None:
        """Have `wake` called on the event loop; calls in quick succession are merged."""
        ...

    def generation(self, *topics: Topic) -> int:
        """Return a number that grows with every wake-up about one of the topics (none named: about any)."""
        ...

    async def wait(self, noted: int, *topics: Topic, at_most: timedelta) -> bool:
        """Sleep until the generation of these topics is not the noted one; False when the time passed without."""
        ...
