"""Dead letters: read, seen, and brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from windlass.core.blocking import twin_of
from windlass.core.canary import Canary, CanaryState
from windlass.core.checks import check_range
from windlass.core.job import DeadLetter
from windlass.core.job_verbs import Bulk
from windlass.core.letters import LetterFilter
from windlass.store import batches
from windlass.store.calls import bulk, canaries, letter_pages, letters
from windlass.store.noun import Noun, verb


class Letters(Noun):
    """Dead letters, and what operators do with them."""

    list, list_sync = verb(letter_pages.list_letters)
    get, get_sync = verb(letter_pages.get_letter)
    groups, groups_sync = verb(letter_pages.group_letters)
    count_open, count_open_sync = verb(letter_pages.count_open_letters)
    acknowledge, acknowledge_sync = verb(letters.acknowledge)
    requeue, requeue_sync = verb(letters.requeue)
    counts, counts_sync = verb(letter_pages.count_letters)
    add_note, add_note_sync = verb(letters.add_note)

    async def edit(self, letter_id: int, payload: Mapping[str, Any], *, by: str) -> DeadLetter:
        """Change what the job of an open letter comes back with; the letter keeps the payload it died with.

        Raises LetterNotFound, LetterSettled when the letter is closed, and InvalidPayload; an application also checks what the
        task takes.
        """
        await self._check_payload(letter_id, payload)
        return await self._run(letters.edit(letter_id, payload, by=by))

    edit_sync = twin_of(edit)

    async def _check_payload(self, letter_id: int, payload: Mapping[str, Any]) -> None:
        """Check what a store cannot know of a payload: nothing."""

    async def acknowledge_all(
        self,
        wanted: LetterFilter,
        *,
        by: str,
        note: str | None = None,
        dry_run: bool = False,
        batch: int = batches.MAX_ROWS,
        on_batch: Callable[[Bulk], object] | None = None,
    ) -> Bulk:
        """Acknowledge every letter a filter matches, each batch in a transaction of its own."""
        make = partial(letters.acknowledge, by=by, note=note)
        return await self._bulk(make, wanted, batch, dry_run=dry_run, on_batch=on_batch)

    acknowledge_all_sync = twin_of(acknowledge_all)

    async def requeue_all(
        self,
        wanted: LetterFilter,
        *,
        dry_run: bool = False,
        batch: int = batches.MAX_ROWS,
        on_batch: Callable[[Bulk], object] | None = None,
    ) -> Bulk:
        """Bring back the jobs of every open letter a filter matches, each batch in a transaction of its own."""
        return await self._bulk(letters.requeue, wanted, batch, dry_run=dry_run, on_batch=on_batch)

    requeue_all_sync = twin_of(requeue_all)

    async def requeue_group(self, fingerprint: str, *, dry_run: bool = False, batch: int = batches.MAX_ROWS) -> Bulk:
        """Bring back the jobs of every open letter of one kind, as `requeue_all` does; raises LetterGroupNotFound."""
        await self._run(letter_pages.check_group(fingerprint))
        return await self.requeue_all(LetterFilter(fingerprint=fingerprint), dry_run=dry_run, batch=batch)

    requeue_group_sync = twin_of(requeue_group)

    async def _bulk(
        self,
        make: Callable[[Sequence[int]], letters.Settling],
        wanted: LetterFilter,
        batch: int,
        *,
        dry_run: bool,
        on_batch: Callable[[Bulk], object] | None,
    ) -> Bulk:
        check_range("batch", batch, 1, batches.MAX_ROWS)
        make([])
        until = await self._run(letters.highest())
        done, after = Bulk(), 0
        while ids := await self._run(letters.page(wanted, after, until, batch)):
            after = ids[-1]
            part = Bulk(len(ids))
            if not dry_run:
                part = (await self._run(bulk.letter_batch(make(ids), ids))).bulk
            done = done.plus(part)
            if on_batch is not None:
                on_batch(done)
        return done


class Canaries(Noun):
    """Requeues of many letters, of which a few are tried before the others."""

    start, start_sync = verb(canaries.start)
    get, get_sync = verb(canaries.get)
    list, list_sync = verb(canaries.list_canaries)
    cancel, cancel_sync = verb(canaries.cancel)
    advance, advance_sync = verb(canaries.advance)

    async def advance_all(self) -> tuple[tuple[Canary, ...], bool, bool]:
        """Do the next step of each that is under way; returns those that moved, whether to go on at once, and whether none is."""
        active = await self._run(canaries.list_active())
        steps = [await self.advance(canary_id) for canary_id in active]
        moved = tuple(one for one in steps if one is not None)
        return moved, any(one.state is CanaryState.REQUEUING for one in moved), not active
