"""The user's application on a database of one test's own."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType

from windlass.app import Windlass
from windlass.store.backend import Backend
from windlass.testing.clock import FakeClock
from windlass.testing.timed import TimedBackend

IN_MEMORY = "sqlite://"


class fresh:  # noqa: N801 - used as a function: `with fresh(app):`
    """Bind an application to an empty database in memory, until the block ends: `with` or `async with`.

    Its time is `clock`'s, by default one that stands at the moment the block began. What the block declares (tasks, hooks,
    a lifespan) is forgotten with its jobs. Give another `database_url` for a file (child processes, a caller's own
    connection) or for PostgreSQL: it is migrated, and emptying it is up to you.
    """

    def __init__(self, app: Windlass, database_url: str = IN_MEMORY, *, clock: FakeClock | None = None) -> None:
        """Do nothing yet."""
        self._app = app
        self._url = database_url
        self.clock = FakeClock(datetime.now(UTC)) if clock is None else clock  # noqa: TID251 - the moment real code would see
        self._bound = ExitStack()

    def __enter__(self) -> Windlass:
        self._bound.enter_context(self._app.bound(self._url, around=self._around))
        try:
            # SQLite does it when it opens.
            if not self._url.startswith("sqlite:"):
                self._app.migrate()
        except BaseException:
            self._bound.close()
            raise
        return self._app

    def _around(self, backend: Backend) -> Backend:
        return TimedBackend(backend, self.clock)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self._app.close()
        finally:
            self._bound.close()

    async def __aenter__(self) -> Windlass:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._app.aclose()
        finally:
            self._bound.close()
