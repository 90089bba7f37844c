"""Dead letters: read, seen, and brought back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from windlass.core.blocking import twin_of
from windlass.core.checks import check_range
from windlass.core.job_verbs import Bulk
from windlass.core.letters import LetterFilter
from windlass.store import batches
from windlass.store.calls import bulk, letter_pages, letters
from windlass.store.noun import Noun, verb


class Letters(Noun):
    """What died, of what, and what operators do about it."""

    list, list_sync = verb(letter_pages.list_letters)
    get, get_sync = verb(letter_pages.get_letter)
    groups, groups_sync = verb(letter_pages.group_letters)
    count_open, count_open_sync = verb(letter_pages.count_open_letters)
    acknowledge, acknowledge_sync = verb(letters.acknowledge)
    requeue, requeue_sync = verb(letters.requeue)

    async def acknowledge_all(
        self, wanted: LetterFilter, *, by: str, note: str | None = None, dry_run: bool = False, batch: int = batches.MAX_ROWS
    ) -> Bulk:
        """Acknowledge every letter a filter matches, each batch in a transaction of its own."""
        make = partial(letters.acknowledge, by=by, note=note)
        return await self._bulk(make, wanted, batch, dry_run=dry_run)

    acknowledge_all_sync = twin_of(acknowledge_all)

    async def requeue_all(self, wanted: LetterFilter, *, dry_run: bool = False, batch: int = batches.MAX_ROWS) -> Bulk:
        """Bring back the jobs of every open letter a filter matches, each batch in a transaction of its own."""
        return await self._bulk(letters.requeue, wanted, batch, dry_run=dry_run)

    requeue_all_sync = twin_of(requeue_all)

    async def _bulk(
        self, make: Callable[[Sequence[int]], letters.Settling], wanted: LetterFilter, batch: int, *, dry_run: bool
    ) -> Bulk:
        check_range("batch", batch, 1, batches.MAX_ROWS)
        make([])
        until = await self._run(letters.highest())
        done, after = Bulk(), 0
        while ids := await self._run(letters.page(wanted, after, until, batch)):
            after = ids[-1]
            part = Bulk(len(ids))
            if not dry_run:
                part, _ = await self._run(bulk.letter_batch(make(ids), ids))
            done = done.plus(part)
        return done
