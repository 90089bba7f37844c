"""Dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from windlass.core.bulk import Bulk
from windlass.core.job import DeadLetter
from windlass.core.letter_page import LetterGroups, LetterPage, LetterQuery, OpenLetters
from windlass.core.letters import LetterFilter, Settled


class Letters(Protocol):
    """What died, of what, and what operators do about it."""

    async def list(self, query: LetterQuery | None = None) -> LetterPage:
        """Read a page of dead letters, newest death first."""
        ...

    async def get(self, letter_id: int) -> DeadLetter:
        """Read one dead letter; raises LetterNotFound."""
        ...

    async def groups(self, *, is_open: bool | None = None, limit: int = 50) -> LetterGroups:
        """Group the newest dead letters by what killed the jobs, each with an example."""
        ...

    async def count_open(self) -> OpenLetters:
        """Count the letters that nobody has dealt with."""
        ...

    async def acknowledge(self, ids: Sequence[int], *, by: str, note: str | None = None) -> Settled:
        """Note who has seen letters; one that was acknowledged before stays as it is and is refused."""
        ...

    async def requeue(self, ids: Sequence[int]) -> Settled:
        """Bring back the jobs of open letters; raises SlotTaken for a single one whose unique key is held."""
        ...

    async def acknowledge_all(
        self, wanted: LetterFilter, *, by: str, note: str | None = None, dry_run: bool = False, batch: int = 500
    ) -> Bulk:
        """Acknowledge every letter a filter matches, each batch in a transaction of its own."""
        ...

    async def requeue_all(self, wanted: LetterFilter, *, dry_run: bool = False, batch: int = 500) -> Bulk:
        """Bring back the jobs of every open letter a filter matches, each batch in a transaction of its own."""
        ...
