"""A database whose process dies, or falls asleep, at a chosen moment of a chosen call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import Any, TypeVar

from tests.crash.child import die
from windlass.store.calls.call import Call, Means, Steps
from windlass.store.database import Database
from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")


class Moment(StrEnum):
    """When a call's process dies."""

    BEFORE = "before"
    """Nothing was sent."""
    EXECUTED = "executed"
    """The statements have run, the transaction is open."""
    COMMITTED = "committed"
    """The transaction is committed, the caller has not seen the answer."""


class Saboteur:
    """Passes calls on, and acts at the given moment of the `occurrence`-th that holds the query `place`."""

    def __init__(self, database: Database, place: str, moment: Moment, occurrence: int = 0) -> None:
        """Die at the place; an occurrence of 0 is never reached."""
        self._inner = database
        self._place = place
        self._moment = moment
        self._left = occurrence
        self._act: Callable[[], object] = die

    def arm(self, act: Callable[[], object]) -> None:
        """Do `act` the next time the place is reached."""
        self._act = act
        self._left = 1

    @property
    def dialect(self) -> str:
        """Which SQL the database speaks."""
        return self._inner.dialect

    async def run(self, call: Call[T]) -> T:
        """Run a call, or act in it."""
        touched: list[bool] = []

        def steps(_: Means) -> Steps[T]:
            answer = yield from self._watched(call, touched)
            if touched:
                self._act_at(Moment.EXECUTED)
            return answer

        # A single statement would be committed before its rows come back.
        answer = await self._inner.run(replace(call, steps=steps, is_single=False))
        if touched:
            self._act_at(Moment.COMMITTED)
        return answer

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction, unharmed."""
        return await self._inner.run_within(connection, call)

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Ring when others commit."""
        return self._inner.listen(wakeups, rng)

    async def aclose(self) -> None:
        """Let go of the database."""
        await self._inner.aclose()

    def reach(self, place: str) -> None:
        """Note that the worker's own code has come to a named place."""
        if self._counts(place):
            self._act_at(Moment.BEFORE)

    def _watched(self, call: Call[T], touched: list[bool]) -> Steps[T]:
        inner = call.begin()
        try:
            step = next(inner)
            while True:
                if self._counts(step.query):
                    self._act_at(Moment.BEFORE)
                    touched.append(True)
                rows = yield step
                step = inner.send(rows)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _counts(self, place: str) -> bool:
        self._left -= place == self._place
        return place == self._place and self._left == 0

    def _act_at(self, moment: Moment) -> None:
        if moment is self._moment:
            self._act()
