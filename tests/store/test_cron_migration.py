"""The interval scheduler's migration on rows: nothing drifts, and undo restores what was there."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, claim_one, due, end, enqueue_one
from windlass.core.audit import Actor
from windlass.core.cadence import Cron, Every, Recurrence
from windlass.core.cron_migration import MARK, Conversion
from windlass.core.job import Edit, Job, JobState, NewJob
from windlass.core.payload import encode_object
from windlass.store import Store
from windlass.testing import FakeClock


def cron_job(expression: str = "0 * * * *", **options: Any) -> NewJob:
    return a_job(recurrence=Recurrence(cadence=Cron(expression)), **options)


async def convert(store: Store, *, dry_run: bool = False, limit: int = 2) -> list[Conversion]:
    return [each async for each in store.cron_migration.convert(dry_run=dry_run, limit=limit)]


async def undo(store: Store) -> list[Conversion]:
    return [each async for each in store.cron_migration.undo(limit=2)]


def changed(found: list[Conversion]) -> list[int]:
    return [each.job_id for each in found if each.becomes is not None]


async def test_a_converted_job_goes_on_at_its_cron_times(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, cron_job())
    before = await store.get(job_id)
    assert changed(await convert(store)) == [job_id]
    after = await store.get(job_id)
    assert after.recurrence == Recurrence(cadence=Every(timedelta(hours=1)), fixed_rate=True)
    assert (after.run_at, after.slot_at, after.state) == (before.run_at, before.slot_at, before.state)
    for hour in range(11, 15):
        clock.move_to((await store.get(job_id)).run_at + timedelta(milliseconds=3))
        await due(store)
        held = await claim_one(store)
        clock.advance(minutes=7)
        await end(store, clock, held)
        slot = (await store.get(job_id)).slot_at
        assert slot is not None
        assert (slot.hour, slot.minute, slot.second, slot.microsecond) == (hour + 1, 0, 0, 0)


async def test_a_dry_run_says_what_would_become_of_each_and_changes_nothing(store: Store) -> None:
    ids = [await enqueue_one(store, cron_job(text)) for text in ("0 * * * *", "*/7 * * * *", "0 0 1 * *", "0 0 * * *")]
    await enqueue_one(store, a_job())
    await enqueue_one(store, a_job(recurrence=Recurrence(cadence=Every(timedelta(hours=1)))))
    await enqueue_one(store, cron_job("@daily"))
    jobs = [await store.get(job_id) for job_id in ids]
    found = await convert(store, dry_run=True)
    assert [each.job_id for each in found] == ids
    assert [each.reason is None for each in found] == [True, False, False, True]
    assert [await store.get(job_id) for job_id in ids] == jobs
    assert changed(await convert(store)) == [ids[0], ids[3]]
    assert changed(await convert(store)) == []


async def test_undo_restores_rule_and_metadata(store: Store) -> None:
    bare = await enqueue_one(store, cron_job())
    told = await enqueue_one(store, cron_job("*/15 * * * *", metadata=encode_object({"category": "news"})))
    empty = await enqueue_one(store, cron_job("*/20 * * * *", metadata="{}"))
    before = [await store.get(job_id) for job_id in (bare, told, empty)]
    operator = store.acting(Actor("ada"))
    await convert(operator)
    assert set(json.loads((await store.get(told)).metadata_json or "{}")) == {"category", MARK}
    assert changed(await undo(operator)) == [bare, told, empty]
    assert [core(await store.get(job_id)) for job_id in (bare, told, empty)] == [core(job) for job in before]
    assert await undo(operator) == []
    assert {entry.action for entry in await store.audit.list()} == {"convert cron", "undo cron conversion"}


def core(job: Job) -> tuple[object, ...]:
    return job.cadence, job.metadata_json, job.run_at, job.slot_at, job.state, job.wait_reason


async def test_undo_leaves_a_job_whose_cadence_was_edited_since(store: Store, clock: FakeClock) -> None:
    edited, left = [await enqueue_one(store, cron_job()) for _ in range(2)]
    await convert(store)
    rule = Recurrence(cadence=Every(timedelta(minutes=5)))
    await store.edit(edited, Edit(recurrence=rule, next_at=clock.now() + timedelta(minutes=5)))
    refused, restored = await undo(store)
    assert (refused.job_id, refused.reason) == (edited, "its cadence was edited since it was converted")
    assert restored.job_id == left
    assert (await store.get(edited)).recurrence == rule


async def test_undo_brings_a_job_that_was_resumed_meanwhile_back_into_step(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, cron_job())
    await convert(store)
    await store.pause([job_id])
    clock.advance(minutes=7)
    await store.resume([job_id])
    assert (await store.get(job_id)).run_at.minute == 37
    await undo(store)
    assert (await store.get(job_id)).run_at.minute == 0


async def test_a_job_that_runs_is_converted_and_keeps_its_times(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, cron_job())
    clock.advance(minutes=30)
    await due(store)
    held = await claim_one(store)
    assert changed(await convert(store)) == [job_id]
    clock.advance(minutes=3)
    await end(store, clock, held)
    job = await store.get(job_id)
    assert (job.state, job.run_at.minute, job.recurrence is not None and job.recurrence.fixed_rate) == (
        JobState.SCHEDULED,
        0,
        True,
    )


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_jobs_that_do_not_go_on_by_themselves_are_not_converted(store: Store, verb: str) -> None:
    job_id = await enqueue_one(store, cron_job())
    await getattr(store, verb)([job_id])
    assert [each.reason is None for each in await convert(store)] == ([False] if verb == "pause" else [])
    assert not changed(await convert(store))
