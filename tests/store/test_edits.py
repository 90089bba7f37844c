"""Edits that change a part of a field are worked out from the row as it is."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim, enqueue_one
from windlass.core.cadence import Cron, Every, Recurrence
from windlass.core.interval import IntervalChange
from windlass.core.job import Edit, JobState
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound
from windlass.store import Store
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)
HOURLY = Recurrence(cadence=Every(HOUR), timezone="Europe/Berlin", unit="hours")


async def test_a_part_of_the_rule_changes_and_the_rest_stays(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=HOURLY))
    before = await store.get(job_id)
    clock.advance(minutes=10)
    job = (await store.edit(job_id, Edit(rule={"max_runs": 5}))).one()
    rule = job.recurrence
    assert rule is not None
    assert (rule.max_runs, rule.cadence, rule.timezone, job.run_at) == (5, HOURLY.cadence, "Europe/Berlin", before.run_at)
    job = (await store.edit(job_id, Edit(rule={"interval": IntervalChange(2, None)}))).one()
    assert (job.recurrence, job.run_at) == (
        Recurrence(cadence=Every(2 * HOUR), timezone="Europe/Berlin", unit="hours", max_runs=5),
        clock.now() + 2 * HOUR,
    )
    job = (await store.edit(job_id, Edit(rule={"cadence": Cron("0 3 * * *"), "unit": None}))).one()
    assert (job.recurrence is not None, job.run_at > clock.now()) == (True, True)


async def test_a_part_of_payload_and_retry_policy_changes(store: Store) -> None:
    spec = RetrySpec(profile="interval", cap=HOUR)
    job_id = await enqueue_one(store, a_job(payload='{"a":1,"b":{"c":2}}', retry=spec))
    changes = Edit(payload_fields={"a": "x", "d": None}, retry_base=timedelta(seconds=9))
    job = (await store.edit(job_id, changes)).one()
    assert job.payload == {"a": "x", "b": {"c": 2}, "d": None}
    assert RetrySpec.decode(job.retry) == RetrySpec(profile="interval", base=timedelta(seconds=9), cap=HOUR)


async def test_an_edit_switches_a_schedule_in_the_same_transaction(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=HOURLY))
    due = (await store.get(job_id)).run_at
    off = (await store.edit(job_id, Edit(is_enabled=False, priority=5))).one()
    assert (off.state, off.priority, off.is_enabled) == (JobState.PAUSED, 5, False)
    on = (await store.edit(job_id, Edit(is_enabled=True))).one()
    assert (on.state, on.run_at) == (JobState.SCHEDULED, due)
    await store.run_now([job_id])
    await claim(store)
    held = (await store.edit(job_id, Edit(is_enabled=False))).one()
    assert (held.state, held.held) == (JobState.RUNNING, True)


async def test_what_cannot_be_switched_changes_nothing(store: Store) -> None:
    once = await enqueue_one(store, a_job())
    for changes in (Edit(is_enabled=True, priority=5), Edit(rule={"timezone": "UTC"}, priority=5)):
        with pytest.raises(InvalidInput, match="not recurring"):
            await store.edit(once, changes)
    assert (await store.get(once)).priority == 0
    assert (await store.edit(once, Edit(is_enabled=False))).one().state is JobState.PENDING
    dead = await enqueue_one(store, a_job("dead", recurrence=HOURLY))
    await store.bury([dead], "gone")
    with pytest.raises(InvalidTransition, match="failed → paused"):
        await store.edit(dead, Edit(is_enabled=False, priority=5))
    assert (await store.get(dead)).priority == 0


async def test_partial_edits_of_what_is_over_or_unknown_are_refused(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=HOURLY))
    await store.cancel([job_id])
    for changes in (Edit(rule={"max_runs": 5}), Edit(retry_base=HOUR), Edit(is_enabled=True), Edit(payload_fields={"a": 1})):
        with pytest.raises(InvalidTransition, match="cancelled"):
            (await store.edit(job_id, changes)).one()
        with pytest.raises(JobNotFound):
            (await store.edit(99, changes)).one()


async def test_racing_edits_of_different_parts_all_count(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=HOURLY))
    edits = [
        Edit(rule={"max_runs": 5}),
        Edit(rule={"timezone": "Asia/Tokyo"}),
        Edit(rule={"fixed_rate": True}),
        *(Edit(payload_fields={f"n{n}": n}) for n in range(6)),
    ]
    await asyncio.gather(*(store.edit(job_id, one) for one in edits))
    job = await store.get(job_id)
    rule = job.recurrence
    assert rule is not None
    assert (rule.max_runs, rule.timezone, rule.fixed_rate) == (5, "Asia/Tokyo", True)
    assert job.payload == {f"n{n}": n for n in range(6)}
