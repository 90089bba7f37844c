"""Schedules made and changed by hand, and counts without templates."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, claim_one, due, end, recurring
from windlass.core.cadence import Cron, Every, parse_cadence
from windlass.core.job import Job, JobState, NewJob
from windlass.core.schedule_edit import ScheduleEdit
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound, ScheduleExists, StoreConflict
from windlass.store import Store
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)


def a_schedule(name: str = "tick", **options: Any) -> NewJob:
    options.setdefault("recurrence", recurring(HOUR))
    return a_job("tick", name=name, **options)


async def created(store: Store, **options: Any) -> Job:
    return await store.schedules.create(a_schedule(**options))


async def test_a_schedule_is_created_once(store: Store) -> None:
    made = await created(store)
    with pytest.raises(ScheduleExists, match=f"job {made.id}") as raised:
        await store.schedules.create(a_schedule(priority=9))
    assert raised.value.holder == made.id
    assert await store.get(made.id) == made


async def test_a_schedule_is_created_disabled_with_its_time(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.create(a_schedule(), is_enabled=False)
    assert (made.state, made.is_enabled, made.run_at) == (JobState.PAUSED, False, clock.now() + HOUR)


async def test_of_racing_creations_one_wins(stores: list[Store]) -> None:
    asked = [store.schedules.create(a_schedule()) for store in stores]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Job) for answer in answers) == 1
    assert all(isinstance(answer, Job | ScheduleExists) for answer in answers)


async def test_a_change_is_partial_and_keeps_the_time(store: Store, clock: FakeClock) -> None:
    made = await created(store, subject="a", description="d", spawn=True, child_key="a", metadata='{"m":1}')
    clock.advance(minutes=5)
    edit = ScheduleEdit(name="tock", subject="b", child_key="b", priority=7, cadence=Every(HOUR))
    left = await store.schedules.change(made.id, edit)
    assert (left.name, left.subject, left.child_key, left.base_priority, left.run_at) == ("tock", "b", "b", 7, made.run_at)
    assert (left.description, left.metadata_json, left.recurrence) == ("d", made.metadata_json, made.recurrence)
    emptied = await store.schedules.change(made.id, ScheduleEdit(description=""))
    assert (emptied.description, emptied.name) == (None, "tock")


async def test_another_cadence_counts_from_now_also_while_disabled(store: Store, clock: FakeClock) -> None:
    made = await created(store, spawn=True)
    clock.advance(minutes=5)
    edit = ScheduleEdit(cadence=Every(timedelta(minutes=30)), is_enabled=False)
    left = await store.schedules.change(made.id, edit)
    assert (left.state, left.run_at, left.slot_at) == (
        JobState.PAUSED,
        clock.now() + timedelta(minutes=30),
        clock.now() + timedelta(minutes=30),
    )
    again = await store.schedules.change(made.id, ScheduleEdit(is_enabled=True))
    assert (again.state, again.run_at) == (JobState.SCHEDULED, left.run_at)


async def test_a_taken_name_changes_nothing(store: Store) -> None:
    await created(store)
    other = await created(store, name="other")
    with pytest.raises(ScheduleExists):
        await store.schedules.change(other.id, ScheduleEdit(name="tick", priority=9))
    assert await store.get(other.id) == other


async def test_of_racing_renames_one_wins(stores: list[Store]) -> None:
    made = [await created(stores[0], name=f"s{place}") for place in range(len(stores))]
    asked = [store.schedules.change(job.id, ScheduleEdit(name="one")) for store, job in zip(stores, made, strict=True)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Job) for answer in answers) == 1
    assert all(isinstance(answer, Job | ScheduleExists | StoreConflict) for answer in answers)


async def test_what_has_ended_is_not_enabled_by_a_change(store: Store) -> None:
    made = await created(store)
    await store.cancel([made.id])
    with pytest.raises(InvalidTransition):
        await store.schedules.change(made.id, ScheduleEdit(is_enabled=True, priority=9))
    assert (await store.get(made.id)).base_priority == 0


async def test_only_a_schedule_can_be_changed_so(store: Store) -> None:
    [plain] = await store.enqueue([a_job()])
    for number in (plain.id, 999, 2**80):
        with pytest.raises(JobNotFound):
            await store.schedules.change(number, ScheduleEdit(priority=1))
    for bad in ({"name": ""}, {"priority": 2**31}, {"description": "x" * 4001}, {"description": "\0"}, {"subject": ""}):
        with pytest.raises(InvalidInput):
            ScheduleEdit(**bad)
    with pytest.raises(InvalidInput):
        await store.schedules.create(a_job())


async def test_templates_are_left_out_of_a_tasks_counts(store: Store, clock: FakeClock) -> None:
    rule = recurring(HOUR)
    template = a_job(name="t", recurrence=rule, spawn=True)
    jobs = [a_job(), a_job(), a_job(delay=HOUR), template, a_job(name="r", recurrence=rule), a_job("other")]
    ids = [one.id for one in await store.enqueue(jobs)]
    buried = await store.enqueue([a_job(name="b", recurrence=rule, spawn=True), a_job(delay=HOUR)])
    await store.bury([one.id for one in buried], "unwanted")
    await store.pause([ids[2]])
    await end(store, clock, await claim_one(store))
    found = {(one.state, one.wait_reason): one.jobs for one in await store.count_task("work")}
    assert found == {("pending", "new"): 1, ("completed", None): 1, ("scheduled", "recurrence"): 1, ("failed", None): 1}
    clock.advance(hours=1)
    await store.spawn()
    await due(store)
    assert sum(one.jobs for one in await store.count_task("work") if one.state is JobState.PENDING) == 3


async def test_jobs_are_read_by_their_numbers(store: Store) -> None:
    ids = [one.id for one in await store.enqueue([a_job(), a_job(), a_job()])]
    found = await store.get_many([ids[2], 999, ids[0], -1, 2**80])
    assert [job.id for job in found] == [ids[0], ids[2]]


async def test_a_cadence_is_given_back_as_it_was_written(store: Store) -> None:
    for text in ("@every 90m", "@every 24h", "@daily", "5 4 * * *"):
        made = await store.schedules.create(a_schedule(text, recurrence=recurring_as(text)))
        assert made.recurrence is not None
        assert str(made.recurrence.cadence) == text
    assert parse_cadence("@every 90m") == parse_cadence("@every 1h30m") != Cron("@daily")


def recurring_as(text: str) -> Any:
    return type(recurring())(cadence=parse_cadence(text))
