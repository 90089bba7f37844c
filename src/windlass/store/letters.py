"""Dead letters, for asyncio and for code without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.job import DeadLetter
from windlass.core.letters import LetterGroups, LetterPage, LetterQuery, OpenLetters
from windlass.errors import DeadLetterNotFound
from windlass.store.calls import letters

if TYPE_CHECKING:
    from windlass.store.sql_store import Database
    from windlass.store.sync_store import SyncDatabase


class SqlLetters:
    """What died, of what, and how often."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def list(self, query: LetterQuery | None = None) -> LetterPage:
        """Read a page of dead letters, newest death first."""
        return await self._db.run(letters.list_letters(query or LetterQuery()))

    async def get(self, letter_id: int) -> DeadLetter:
        """Read one dead letter; raises DeadLetterNotFound."""
        found = await self._db.run(letters.get_letter(letter_id))
        if not found:
            raise DeadLetterNotFound(letter_id)
        return found[0]

    async def groups(self, *, is_open: bool | None = None, limit: int = 50) -> LetterGroups:
        """Group the newest dead letters by what killed the jobs, each with an example."""
        return await self._db.run(letters.group_letters(is_open=is_open, limit=limit))

    async def count_open(self) -> OpenLetters:
        """Count the letters that nobody has dealt with."""
        return await self._db.run(letters.count_open_letters())


class SyncLetters:
    """What a client reads of them, blocking."""

    def __init__(self, database: SyncDatabase) -> None:
        """Speak to `database`."""
        self._db = database

    def list(self, query: LetterQuery | None = None) -> LetterPage:
        """Read a page of dead letters, newest death first."""
        return self._db.run_sync(letters.list_letters(query or LetterQuery()))
