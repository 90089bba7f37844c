"""Dead letters."""

from __future__ import annotations

from typing import Protocol

from windlass.core.job import DeadLetter
from windlass.core.letters import LetterGroups, LetterPage, LetterQuery, OpenLetters


class Letters(Protocol):
    """What died, of what, and how often."""

    async def list(self, query: LetterQuery | None = None) -> LetterPage:
        """Read a page of dead letters, newest death first."""
        ...

    async def get(self, letter_id: int) -> DeadLetter:
        """Read one dead letter; raises DeadLetterNotFound."""
        ...

    async def groups(self, *, is_open: bool | None = None, limit: int = 50) -> LetterGroups:
        """Group the newest dead letters by what killed the jobs, each with an example."""
        ...

    async def count_open(self) -> OpenLetters:
        """Count the letters that nobody has dealt with."""
        ...
