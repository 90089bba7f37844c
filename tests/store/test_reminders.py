"""Reminders: kept until their time, and turned into jobs exactly once."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.job import NewJob
from windlass.core.reminder import NewReminder, Reminder
from windlass.errors import InvalidInput, ReminderNotFound, WindlassError
from windlass.store import Store
from windlass.testing import FakeClock


async def a_reminder(store: Store, clock: FakeClock, *, minutes: float = 0, mail: str = '{"to":"ada@example.org"}') -> Reminder:
    return await store.reminders.add(NewReminder(clock.now() + timedelta(minutes=minutes), json.loads(mail)))


def mailed(reminder: Reminder) -> NewJob:
    return NewJob(task="email", lane="fast", payload=reminder.mail_json, subject=f"reminder {reminder.id}")


async def test_a_reminder_is_kept_read_and_forgotten(store: Store, clock: FakeClock) -> None:
    made = await a_reminder(store, clock, minutes=5)
    assert (made.due_at, made.mail_json) == (clock.now() + timedelta(minutes=5), '{"to":"ada@example.org"}')
    assert (made.job_id, made.enqueued_at, made.created_at) == (None, None, clock.now())
    assert await store.reminders.get(made.id) == made
    assert await store.reminders.delete(made.id) == made
    for call in (store.reminders.get(made.id), store.reminders.delete(made.id)):
        with pytest.raises(ReminderNotFound):
            await call


async def test_reminders_are_read_page_by_page(store: Store, clock: FakeClock) -> None:
    made = [await a_reminder(store, clock, minutes=-place) for place in range(5)]
    first = await store.reminders.list(limit=2)
    assert [*first, *await store.reminders.list(after=first[-1].id)] == made
    assert (await store.reminders.count()).total == 5
    for limit in (0, 501):
        with pytest.raises(InvalidInput):
            await store.reminders.list(limit=limit)


async def test_what_is_due_becomes_one_job_each_and_never_again(store: Store, clock: FakeClock) -> None:
    later = await a_reminder(store, clock, minutes=10)
    second = await a_reminder(store, clock, minutes=-1)
    first = await a_reminder(store, clock, minutes=-2)
    made = await store.reminders.enqueue_due(mailed)
    assert [reminder.id for reminder in made] == [first.id, second.id]
    assert [await store.reminders.get(reminder.id) for reminder in made] == made
    jobs = {job.id: job for job in (await store.list_jobs()).jobs}
    assert [jobs[reminder.job_id or 0].subject for reminder in made] == [f"reminder {first.id}", f"reminder {second.id}"]
    assert {job.payload_json for job in jobs.values()} == {'{"to":"ada@example.org"}'}
    assert await store.reminders.enqueue_due(mailed) == []
    clock.advance(minutes=10)
    assert [one.id for one in await store.reminders.enqueue_due(mailed)] == [later.id]
    assert len((await store.list_jobs()).jobs) == 3


async def test_a_batch_takes_the_longest_due_first(store: Store, clock: FakeClock) -> None:
    made = [await a_reminder(store, clock, minutes=-place) for place in range(5)]
    found = [[one.id for one in await store.reminders.enqueue_due(mailed, limit=2)] for _ in range(4)]
    ids = [one.id for one in reversed(made)]
    assert found == [ids[:2], ids[2:4], ids[4:], []]


async def test_racing_producers_share_the_reminders(store: Store, clock: FakeClock) -> None:
    made = [await a_reminder(store, clock) for _ in range(30)]
    rounds = await asyncio.gather(*(store.reminders.enqueue_due(mailed, limit=7) for _ in range(8)))
    rounds.append(await store.reminders.enqueue_due(mailed))
    assert sorted(one.id for found in rounds for one in found) == [one.id for one in made]
    assert len((await store.list_jobs()).jobs) == 30


async def test_a_producer_that_fails_halfway_leaves_everything_for_the_next(store: Store, clock: FakeClock) -> None:
    made = [await a_reminder(store, clock) for _ in range(3)]
    asked = []

    def failing(reminder: Reminder) -> NewJob:
        asked.append(reminder.id)
        if len(asked) == 2:
            raise WindlassError("no more")
        return mailed(reminder)

    with pytest.raises(WindlassError, match="no more"):
        await store.reminders.enqueue_due(failing)
    assert not (await store.list_jobs()).jobs
    assert len(await store.reminders.enqueue_due(mailed)) == len(made)


async def test_only_those_enqueued_long_ago_are_pruned(store: Store, clock: FakeClock) -> None:
    waiting = await a_reminder(store, clock, minutes=10**6)
    await a_reminder(store, clock)
    await store.reminders.enqueue_due(mailed)
    clock.advance(days=31)
    fresh = await a_reminder(store, clock)
    await store.reminders.enqueue_due(mailed)
    assert await store.reminders.prune(timedelta(days=30)) == 1
    assert [one.id for one in await store.reminders.list()] == [waiting.id, fresh.id]


async def test_a_job_without_its_time_is_refused_by_the_table(store: Store, clock: FakeClock) -> None:
    await a_reminder(store, clock)
    with pytest.raises(Exception, match="windlass_reminders_enqueued"):
        await execute(store, "update windlass_reminders set job_id = 1")


@pytest.mark.parametrize("mail", ["{}", [], None, {"a": float("nan")}, {"a": "\0"}, {1: "a"}])
def test_what_is_no_object_is_refused(clock: FakeClock, mail: Any) -> None:
    with pytest.raises(InvalidInput):
        NewReminder(clock.now(), mail)


async def test_changes_leave_a_line_in_the_audit_log(store: Store, clock: FakeClock) -> None:
    acting = store.acting(Actor("ada"))
    made = await a_reminder(acting, clock)
    await acting.reminders.delete(made.id)
    found = await execute(store, "select principal, action, target from windlass_audit order by id")
    target = f"reminder:{made.id}"
    assert [tuple(row) for row in found] == [("ada", "add reminder", target), ("ada", "delete reminder", target)]
