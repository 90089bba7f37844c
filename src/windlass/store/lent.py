"""A database that is reached only over connections lent by others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from windlass.store.calls.call import Call, Step, Steps

T = TypeVar("T")


class LentDatabase:
    """Runs every call on the connection that `lend` returns, inside the transaction that is open there.

    It opens nothing, so it costs a process nothing that already has connections, and reads what its transaction wrote.
    """

    def __init__(self, dialect: str, lend: Callable[[], Any], rng: Random) -> None:
        """Take the driver's connection from `lend` each time: it may be another one in each thread."""
        self._dialect = dialect
        self._lend = lend
        self._rng = rng

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        return self._dialect

    def run_sync(self, call: Call[T]) -> T:
        """Run a call on the connection of the moment."""
        return self.run_on(self._lend(), call)

    def run_on(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction; one that is in autocommit mode commits at once."""
        if self._dialect == "sqlite":
            from windlass.store import sqlite  # noqa: PLC0415 - each driver is loaded only where it is used

            sqlite.check_driver(connection)
            return sqlite.run_on(connection, call, self._rng)
        from windlass.store import postgres  # noqa: PLC0415 - an optional dependency

        return postgres.run_on(connection, call)

    def run_script(self, work: Callable[[Any], T]) -> T:
        """Run `work` with the connection, all or nothing; for migrations."""
        return self.run_sync(Call(lambda _: _asking(work)))

    def close(self) -> None:
        """Do nothing: the lender of the connections closes them."""


def _asking(work: Callable[[Any], T]) -> Steps[T]:
    [(answer,)] = yield Step("", {}, ask=work)
    value: T = answer
    return value
