"""A database whose clock is a test's."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from windlass.ports import Backend, Clock, Store
from windlass.store import SqlStore
from windlass.store.calls.call import Call, Step, Steps
from windlass.store.database import Database
from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")


class TimedDatabase:
    """Tells the database the time wherever it would look at its own clock."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Speak to `database`; every call happens at the clock's time."""
        self._database = database
        self.clock = clock

    @property
    def dialect(self) -> str:
        """Which SQL it speaks."""
        return self._database.dialect

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        return await self._database.run(self._timed(call))

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        return await self._database.run_within(connection, self._timed(call))

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Ring `wakeups` when others commit, for as long as this is entered."""
        return self._database.listen(wakeups, rng)

    async def aclose(self) -> None:
        """Let go of the database."""
        await self._database.aclose()

    def _timed(self, call: Call[T]) -> Call[T]:
        def steps() -> Steps[T]:
            with closing(call.steps()) as asked:
                return (yield from self._at_our_time(asked))

        return replace(call, steps=steps)

    def _at_our_time(self, asked: Steps[T]) -> Generator[Step, Any, T]:
        try:
            step = next(asked)
            while True:
                if "now" in step.params and step.params["now"] is None:
                    step = step._replace(params={**step.params, "now": self.clock.now()})
                step = asked.send((yield step))
        except StopIteration as done:
            answer: T = done.value
            return answer


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

    def open_async(self) -> SqlStore:
        """Open a store for the event loop that will use it."""
        return self._timed(self._backend.open_async())

    def open_blocking(self) -> SqlStore:
        """Open a store whose coroutines never suspend."""
        return self._timed(self._backend.open_blocking())

    def _timed(self, store: Store) -> SqlStore:
        assert isinstance(store, SqlStore)  # noqa: S101 - the only kind a backend opens
        return store.over(TimedDatabase(store.database, self._clock))

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
        """Let go without closing, in the child of a fork."""
        self._backend.forget()
