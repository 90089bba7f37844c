"""A chore as the upkeep loop sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple


class Round(NamedTuple):
    """What one round of a chore came to."""

    rows: int
    has_more: bool = False
    """The round ended at its bound: the next one should come soon."""
    cursor: str | None = None
    took: timedelta | None = None
    """How long it took, where that is not how long the call lasted."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """A chore: its name, how often it comes round, and a bounded piece of its work, given where the last one left off."""

    name: str
    every: timedelta
    work: Callable[[str | None], Awaitable[Round]]
