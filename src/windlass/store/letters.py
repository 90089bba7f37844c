"""Dead letters: read, seen, and brought back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from windlass.core.audit import Actor
from windlass.core.bulk import Bulk
from windlass.core.checks import check_range
from windlass.core.job import DeadLetter
from windlass.core.letter_page import LetterGroups, LetterPage, LetterQuery, OpenLetters
from windlass.core.letters import LetterFilter, Settled
from windlass.errors import LetterNotFound
from windlass.store import documents
from windlass.store.calls import audit, bulk, letter_pages, letters

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlLetters:
    """What died, of what, and what operators do about it."""

    def __init__(self, database: Database, actor: Actor | None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def list(self, query: LetterQuery | None = None) -> LetterPage:
        """Read a page of dead letters, newest death first."""
        return await self._db.run(letter_pages.list_letters(query or LetterQuery()))

    async def get(self, letter_id: int) -> DeadLetter:
        """Read one dead letter; raises LetterNotFound."""
        found = await self._db.run(letter_pages.get_letter(letter_id))
        if not found:
            raise LetterNotFound(letter_id)
        return found[0]

    async def groups(self, *, is_open: bool | None = None, limit: int = 50) -> LetterGroups:
        """Group the newest dead letters by what killed the jobs, each with an example."""
        return await self._db.run(letter_pages.group_letters(is_open=is_open, limit=limit))

    async def count_open(self) -> OpenLetters:
        """Count the letters that nobody has dealt with."""
        return await self._db.run(letter_pages.count_open_letters())

    async def acknowledge(self, ids: Sequence[int], *, by: str, note: str | None = None) -> Settled:
        """Note who has seen letters; one that was acknowledged before stays as it is and is refused."""
        return await self._settle(letters.acknowledge(ids, by=by, note=note))

    async def requeue(self, ids: Sequence[int]) -> Settled:
        """Bring back the jobs of open letters; raises SlotTaken for a single one whose unique key is held."""
        return await self._settle(letters.requeue(ids))

    async def _settle(self, call: letters.Settling) -> Settled:
        return await self._db.run(audit.audited(call, self._actor, audit.settled))

    async def acknowledge_all(
        self, wanted: LetterFilter, *, by: str, note: str | None = None, dry_run: bool = False, batch: int = documents.MAX_ROWS
    ) -> Bulk:
        """Acknowledge every letter a filter matches, each batch in a transaction of its own."""
        make = partial(letters.acknowledge, by=by, note=note)
        return await self._bulk(make, wanted, batch, dry_run=dry_run)

    async def requeue_all(self, wanted: LetterFilter, *, dry_run: bool = False, batch: int = documents.MAX_ROWS) -> Bulk:
        """Bring back the jobs of every open letter a filter matches, each batch in a transaction of its own."""
        return await self._bulk(letters.requeue, wanted, batch, dry_run=dry_run)

    async def _bulk(
        self, make: Callable[[Sequence[int]], letters.Settling], wanted: LetterFilter, batch: int, *, dry_run: bool
    ) -> Bulk:
        check_range("batch", batch, 1, documents.MAX_ROWS)
        make([])
        until = await self._db.run(letters.highest())
        done, after = Bulk(), 0
        while ids := await self._db.run(letters.page(wanted, after, until, batch)):
            after = ids[-1]
            part = Bulk(len(ids))
            if not dry_run:
                call = bulk.letter_batch(make(ids), ids)
                part, _ = await self._db.run(audit.audited(call, self._actor, itemgetter(1)))
            done = done.plus(part)
        return done
