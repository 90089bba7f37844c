"""Dead letters on the desk of whoever deals with them: edited, noted, counted, and marked as new."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim_one, end, failure, recurring, running
from tests.store.test_letters import dead_letter, forget_job, mourned
from windlass.core.audit import Actor
from windlass.core.job import DeadLetter
from windlass.core.job_verbs import Bulk
from windlass.core.letter_page import LetterCounts, LetterGroup
from windlass.core.letters import MAX_NOTE, MOST_NOTES, LetterFilter
from windlass.core.payload import MAX_BYTES, encode_object
from windlass.core.worker import NewWorker
from windlass.errors import InvalidInput, InvalidPayload, LetterGroupNotFound, LetterNotFound, LetterSettled
from windlass.store import Store
from windlass.testing import FakeClock


async def deploy(store: Store, clock: FakeClock, version: str | None, worker: str) -> None:
    await store.workers.register(NewWorker(id=worker, host="h", pid=1, version="1", app_version=version))
    clock.advance(seconds=1)


async def die(store: Store, clock: FakeClock, message: str = "boom", *, worker: str = "worker-1") -> DeadLetter:
    await store.enqueue([a_job(max_attempts=1)])
    held = await claim_one(store, worker=worker)
    await end(store, clock, held, failure(message))
    clock.advance(seconds=1)
    [letter] = await store.list_dead_letters(held.id)
    return letter


async def groups(store: Store, **wanted: bool) -> dict[str, LetterGroup]:
    return {one.error: one for one in (await store.letters.groups(**wanted)).groups}


async def test_an_edited_payload_is_what_the_job_comes_back_with(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock, payload=encode_object({"order": 7}))
    edited = await store.letters.edit(letter.id, {"order": 8, "big": 12345678901234567890, "ü": 1.0}, by="ann")
    assert (edited.edited_by, edited.edited_at) == ("ann", clock.now())
    assert (await store.get(letter.job_id)).payload_json == '{"order":7}'
    settled = await store.letters.requeue([letter.id])
    assert settled.jobs[0].payload == {"order": 8, "big": 12345678901234567890, "ü": 1.0}
    kept = settled.one()
    assert (kept.original_job["payload"], (kept.edited_payload or {})["order"]) == ({"order": 7}, 8)


async def test_a_job_that_is_gone_is_made_again_with_the_edited_payload(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock, payload=encode_object({"order": 7}))
    await store.letters.acknowledge([letter.id], by="ann")
    await store.letters.edit(letter.id, {"order": 9}, by="ann")
    await forget_job(store, letter.job_id)
    [job] = (await store.letters.requeue([letter.id])).jobs
    assert (job.id != letter.job_id, job.payload_json) == (True, '{"order":9}')


async def test_a_schedule_that_went_on_keeps_the_edited_payload(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    [letter] = await store.list_dead_letters(held.id)
    await store.letters.edit(letter.id, {"fixed": True}, by="ann")
    assert (await store.letters.requeue_all(LetterFilter())) == Bulk(1, 1, 0)
    assert (await store.get(held.id)).payload_json == '{"fixed":true}'


async def test_what_cannot_be_edited_is_refused_with_its_reason(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    with pytest.raises(InvalidPayload, match=r"^payload: .*too large|^payload: "):
        await store.letters.edit(letter.id, {"text": "x" * MAX_BYTES}, by="ann")
    with pytest.raises(InvalidInput, match=r"^by: "):
        await store.letters.edit(letter.id, {}, by="")
    await store.letters.requeue([letter.id])
    with pytest.raises(LetterSettled, match=f"cannot edit dead letter {letter.id}: it was requeued before"):
        await store.letters.edit(letter.id, {}, by="ann")
    for number in (99, 0, 2**70):
        with pytest.raises(LetterNotFound):
            await store.letters.edit(number, {}, by="ann")


async def test_edits_and_notes_are_audited_under_the_name_of_who_made_them(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    acting = store.acting(Actor("ann"))
    await acting.letters.edit(letter.id, {"order": 8}, by="ann")
    await acting.letters.add_note(letter.id, "see ticket 7", by="ann")
    lines = [(one.principal, one.action, one.target) for one in await store.audit.list()]
    assert lines[:2] == [("ann", "note", f"letter:{letter.id}"), ("ann", "edit", f"letter:{letter.id}")]


async def test_notes_are_kept_in_order_with_who_and_when(stores: list[Store], clock: FakeClock) -> None:
    store = stores[0]
    letter = await dead_letter(store, clock)
    first = await store.letters.add_note(letter.id, "a\nlong story", by="ann")
    assert [tuple(one) for one in first.notes] == [(clock.now(), "ann", "a\nlong story")]
    await asyncio.gather(*(one.letters.add_note(letter.id, f"note {place}", by="bob") for place, one in enumerate(stores)))
    seen = await store.letters.get(letter.id)
    assert {one.text for one in seen.notes} == {"a\nlong story", *(f"note {place}" for place in range(5))}
    assert seen.acknowledged_at is None
    await store.letters.requeue([letter.id])
    assert len((await store.letters.add_note(letter.id, "it ran", by="ann")).notes) == 7


async def test_a_note_that_is_too_long_or_one_too_many_is_refused(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    for text in ("", "x" * (MAX_NOTE + 1), "a\0b"):
        with pytest.raises(InvalidInput, match=r"^text: "):
            await store.letters.add_note(letter.id, text, by="ann")
    with pytest.raises(LetterNotFound):
        await store.letters.add_note(99, "lost", by="ann")
    for place in range(MOST_NOTES):
        await store.letters.add_note(letter.id, str(place), by="ann")
    with pytest.raises(InvalidInput, match=f"has {MOST_NOTES} notes, which is the most"):
        await store.letters.add_note(letter.id, "more", by="ann")


async def test_letters_are_counted_by_hour_day_and_week_in_all_and_by_group(store: Store, clock: FakeClock) -> None:
    assert await store.letters.counts() == LetterCounts(0, 0, 0, 0, is_exact=True)
    for hours, message in ((8 * 24, "old"), (30, "old"), (2, "old"), (0, "old"), (0, "fresh")):
        await die(store, clock, message)
        clock.advance(hours=hours)
    assert await store.letters.counts() == LetterCounts(2, 3, 4, 5, is_exact=True)
    found = await groups(store)
    assert found["old"][7:10] == (1, 2, 3)
    assert found["fresh"][7:10] == (1, 1, 1)
    # An hour is over to the microsecond.
    clock.advance(hours=1)
    assert (await store.letters.counts()).hour == 0
    assert (await groups(store, is_open=True))["old"][7:10] == (0, 2, 3)


async def test_a_group_is_new_when_it_first_appeared_with_the_newest_version(store: Store, clock: FakeClock) -> None:
    await die(store, clock, "before versions")
    await deploy(store, clock, "v1", "one")
    old = await die(store, clock, "seen in v1", worker="one")
    assert (old.version, (await groups(store))["seen in v1"].is_new) == ("v1", True)
    assert (await groups(store))["before versions"].is_new is False
    await deploy(store, clock, "v2", "two")
    await deploy(store, clock, "v1", "one again")
    await die(store, clock, "seen in v1", worker="two")
    await die(store, clock, "only in v2", worker="two")
    await die(store, clock, "late from v1", worker="one again")
    await die(store, clock, "nobody knows whose", worker="a stranger")
    found = await groups(store)
    assert {error for error, one in found.items() if one.is_new} == {"only in v2", "nobody knows whose"}
    assert (found["seen in v1"].version, found["seen in v1"].first_died_at) == ("v1", old.first_died_at)
    assert set(await groups(store, is_new=True)) == {"only in v2", "nobody knows whose"}
    assert set(await groups(store, is_new=False, is_open=True)) == set(found) - {"only in v2", "nobody knows whose"}


async def test_a_letter_keeps_the_version_of_the_first_death_of_its_kind(store: Store, clock: FakeClock) -> None:
    await deploy(store, clock, "v1", "one")
    await deploy(store, clock, "v2", "two")
    held = await running(store, a_job(recurrence=recurring(timedelta(minutes=1)), run_at=clock.now(), max_attempts=1))
    await end(store, clock, held, failure("first"))
    for worker, message, version in (("one", "second", "v1"), ("two", "second", "v1"), ("two", "third", "v2")):
        clock.advance(hours=1)
        await store.promote()
        await end(store, clock, await claim_one(store, worker=worker), failure(message))
        [letter] = await store.list_dead_letters(held.id)
        assert (letter.error, letter.version) == (message, version)


async def test_a_run_shows_the_version_of_its_worker(store: Store, clock: FakeClock) -> None:
    await deploy(store, clock, "2026.11", "one")
    await store.enqueue([a_job()])
    held = await claim_one(store, worker="one")
    [going] = await store.list_executions(held.id)
    await end(store, clock, held)
    [ended] = await store.list_executions(held.id)
    assert (going.version, ended.version) == ("2026.11", "2026.11")
    assert [one.app_version for one in await store.workers.list()] == ["2026.11"]
    with pytest.raises(InvalidInput, match=r"^app_version: "):
        await deploy(store, clock, "x" * 101, "two")


async def test_a_group_is_requeued_in_batches_and_others_stay(store: Store, clock: FakeClock) -> None:
    letters = [await die(store, clock, "boom" if place % 2 else "bang") for place in range(8)]
    fingerprint = letters[1].fingerprint
    assert await store.letters.requeue_group(fingerprint, dry_run=True) == Bulk(4, 0, 0)
    assert await store.letters.requeue_group(fingerprint, batch=3) == Bulk(4, 4, 0)
    assert await store.letters.requeue_group(fingerprint) == Bulk(0, 0, 0)
    left = await store.letters.groups(is_open=True)
    assert [(one.error, one.letters) for one in left.groups] == [("bang", 4)]
    with pytest.raises(LetterGroupNotFound, match=r"no dead letter has the fingerprint 'nope'; `windlass dead groups` lists"):
        await store.letters.requeue_group("nope")
