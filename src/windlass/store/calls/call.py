"""What a verb is: the statements it sends, with what, and what their rows mean. No I/O."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.store.rows import Row

T = TypeVar("T")
Steps = Generator["Step", Sequence[Row], T]

STATEMENT_TIMEOUT = timedelta(seconds=10)
"""How long one statement may take on PostgreSQL where no setting says otherwise."""


class Step(NamedTuple):
    """One query of a call; `arms` is how many slices a claim or a list merges.

    With `ask` it is no query but a question to the caller's code, which is given the connection; the answer is the one row.
    """

    query: str
    params: Mapping[str, Any]
    arms: int = 0
    ask: Callable[[Any], Any] | None = None


def asked(step: Step, connection: Any) -> Sequence[Row]:
    """Ask the caller's code where nothing can be awaited."""
    answer = None if step.ask is None else step.ask(connection)
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidInput("predicate", step.ask, "must be a plain function here: nothing can be awaited inside this transaction")
    return [(answer,)]


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
    is_engine: bool = False
    """Moves jobs through their runs: has connections that readers cannot use up, as what is urgent has."""
    timeout: timedelta | None = None
    """How long it may take: on PostgreSQL each statement, at most what the settings say; on SQLite the whole of a read.

    None is what the settings say, nothing at all is for ever.
    """
    wakes: Callable[[T], Collection[Topic]] = nobody
    """What sleepers are told once this answer is committed."""


def single(query: str, params: Mapping[str, Any], decode: Callable[[Sequence[Row]], T], **marks: Any) -> Call[T]:
    """Make a call of one query."""

    def steps() -> Steps[T]:
        return decode((yield Step(query, params)))

    return Call(steps, is_single=True, **marks)
