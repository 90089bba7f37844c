"""What a verb is: the statements it sends, with what, and what their rows mean. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from windlass.core.topic import Topic
from windlass.store.rows import Row

T = TypeVar("T")
Steps = Generator["Step", Sequence[Row], T]


class Step(NamedTuple):
    """One query of a call; `arms` is how many slices a claim or a list merges."""

    query: str
    params: Mapping[str, Any]
    arms: int = 0


def nobody(_answer: object) -> Collection[Topic]:
    """Wake nobody."""
    return ()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A verb ready to run, in one transaction."""

    steps: Callable[[], Steps[T]]
    is_single: bool = False
    """One statement on PostgreSQL, so it needs no transaction around it."""
    is_read: bool = False
    is_urgent: bool = False
    """Goes before other waiting calls: a late renewal or finish costs a run."""
    wakes: Callable[[T], Collection[Topic]] = nobody
    """What sleepers are told once this answer is committed."""


def single(query: str, params: Mapping[str, Any], decode: Callable[[Sequence[Row]], T], **marks: Any) -> Call[T]:
    """Make a call of one query."""

    def steps() -> Steps[T]:
        return decode((yield Step(query, params)))

    return Call(steps, is_single=True, **marks)
