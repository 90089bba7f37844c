"""What a verb is: the statements it sends, with what, and what their rows mean. No I/O."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from windlass.core.audit import Actor, Deed
from windlass.core.record import record
from windlass.core.retry import PROFILES, Profile
from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.ports import Clock
from windlass.store.rows import Row

T = TypeVar("T")
Steps = Generator["Step", Sequence[Row], T]

MAX_ARMS = 64
"""How many slices a claim merges at the most."""
STATEMENT_TIMEOUT = timedelta(seconds=10)
"""How long one statement may take on PostgreSQL where no setting has another."""


class Step(NamedTuple):
    """One query of a call; `arms` is how many slices a claim or a list merges.

    Its runner sets the time: `now` is a parameter of every query. One that is given holds for this query alone.

    With `columns` it is about many rows, given as the values of each column, all of one length: PostgreSQL gets arrays of these
    names, SQLite a `values` list made of the query's `_row`, which is padded with rows of nulls.

    With `ask` it is no query but a question to the caller's code, which is given the connection; the answer is the one row.
    """

    query: str
    params: dict[str, Any]
    arms: int = 0
    columns: Mapping[str, Sequence[Any]] | None = None
    ask: Callable[[Any], Any] | None = None


def asked(step: Step, connection: Any) -> Sequence[Row]:
    """Ask the caller's code where nothing can be awaited."""
    answer = None if step.ask is None else step.ask(connection)
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidInput("predicate", step.ask, "must be a plain function here: nothing can be awaited inside this transaction")
    return [(answer,)]


def no_topics(_answer: object) -> Collection[Topic]:
    """Return no topics: no sleeper is woken."""
    return ()


class Means(NamedTuple):
    """What the runner of a call brings along."""

    rng: Random
    profiles: Mapping[str, Profile] = PROFILES
    """What rows leave open about retries."""
    most_arms: int = MAX_ARMS
    actor: Actor | None = None
    """The principal that the audit log names; without one no line is written."""
    clock: Clock | None = None
    """A test's clock; without one the time is the database's own."""

    @property
    def principal(self) -> str | None:
        """The acting principal, if known."""
        return None if self.actor is None else self.actor.principal


@record
class Call(Generic[T]):
    """A verb ready to run, in one transaction."""

    steps: Callable[[Means], Steps[T]]
    is_single: bool = False
    """One statement on PostgreSQL, so it needs no transaction around it."""
    is_read: bool = False
    is_snapshot: bool = False
    """A read of several statements that must all see the same moment; SQLite does that for every read."""
    is_urgent: bool = False
    """Goes before other waiting calls: a late renewal or finish costs a run."""
    is_engine: bool = False
    """Moves jobs through their runs: has connections that readers cannot use up, as what is urgent has."""
    timeout: timedelta | None = None
    """How long it may take: on PostgreSQL each statement, at most what the settings allow; on SQLite the whole of a read.

    None is what the settings have, nothing at all is for ever.
    """
    wakes: Callable[[T], Collection[Topic]] = no_topics
    """The topics that sleepers are woken with once this answer is committed."""
    announces_work: bool = False
    """Whether its statement can itself wake the workers that claim, if asked to; `wakes` then adds nothing."""
    deed: Callable[[T], Deed | None] | None = None
    """What the audit log gets of an answer; the line is written in the call's own transaction."""
    known: tuple[T, ...] = ()
    """Its answer, if it needs no database."""

    def given(self, means: Means) -> Call[T]:
        """Return the call as it runs with these means."""
        is_audited = means.actor is not None and self.deed is not None
        return replace(self, steps=lambda _: _begin(self, means), is_single=self.is_single and not is_audited)

    def begin(self) -> Steps[T]:
        """Begin to run it; a call that needs means is given them first."""
        return self.steps(_NONE)


# A call that needs chance is run by a store, which has its own.
_NONE = Means(Random(0))  # noqa: S311


def _begin(call: Call[T], means: Means) -> Steps[T]:
    steps = call.steps(means)
    if means.actor is not None and call.deed is not None:
        steps = _audited(steps, call.deed, means.actor)
    return steps if means.clock is None else _timed(steps, means.clock)


def _audited(steps: Steps[T], tell: Callable[[T], Deed | None], actor: Actor) -> Steps[T]:
    answer = yield from steps
    deed = tell(answer)
    if deed is not None:
        yield add_audit(actor, deed)
    return answer


def add_audit(actor: Actor, deed: Deed) -> Step:
    """Write a line of the audit log."""
    said = {"action": deed.action, "target": deed.target, "outcome": deed.outcome, "details": deed.details}
    return Step("add_audit", {"principal": actor.principal, "request_id": actor.request_id, **said})


def _timed(steps: Steps[T], clock: Clock) -> Steps[T]:
    with closing(steps):
        try:
            step = next(steps)
            while True:
                if step.params.get("now") is None:
                    step = step._replace(params={**step.params, "now": clock.now()})
                step = steps.send((yield step))
        except StopIteration as done:
            answer: T = done.value
            return answer


def known(answer: T) -> Call[T]:
    """Make a call that needs no database."""

    def steps(_: Means) -> Steps[T]:
        yield from ()
        return answer

    return Call(steps, known=(answer,))


def single(query: str, params: dict[str, Any], decode: Callable[[Sequence[Row]], T], **marks: Any) -> Call[T]:
    """Make a call of one query."""

    def steps(_: Means) -> Steps[T]:
        return decode((yield Step(query, params)))

    return Call(steps, is_single=True, **marks)
