"""Settings: what operators set holds from the next decision on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, claim_one, due, end, failure, running
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.job import Claimed, JobState, NewJob
from windlass.core.report import Report
from windlass.core.retry import PROFILES, RetrySpec
from windlass.core.settings import Origin, from_environment, profiles_with
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock


def a_pull(**options: Any) -> NewJob:
    return a_job("leads", lane="pull", **{"retry": RetrySpec(profile="pull", jitter=0.0)} | options)


async def fail(store: Store, job: Claimed) -> JobState:
    return (await store.report(Report(job_id=job.id, worker=job.worker, token=job.token, error="x"))).state


async def delay_of(store: Store, clock: FakeClock, job: NewJob) -> timedelta:
    held = await running(store, job)
    await fail(store, held)
    return (await store.get(held.id)).run_at - clock.now()


async def test_the_table_holds_only_what_was_set(store: Store, clock: FakeClock) -> None:
    assert await store.settings.all() == []
    kept = await store.settings.set("BACKOFF_BASE_SEC", 45, "ada")
    assert (kept.name, kept.value, kept.updated_by, kept.updated_at) == ("BACKOFF_BASE_SEC", "45", "ada", clock.now())
    await store.settings.set("PICK_ORDER", "fair")
    clock.advance(seconds=1)
    again = await store.settings.set("BACKOFF_BASE_SEC", "46")
    assert (again.value, again.updated_by, again.updated_at) == ("46", None, clock.now())
    assert [(one.name, one.value) for one in await store.settings.all()] == [("BACKOFF_BASE_SEC", "46"), ("PICK_ORDER", "fair")]


async def test_the_table_beats_the_environment_until_it_is_unset(store: Store) -> None:
    env = {"LEASE_SEC_DEFAULT": "60"}
    assert (await store.settings.effective())["LEASE_SEC_DEFAULT"][1:] == (180, Origin.DEFAULT)
    assert (await store.settings.effective(env))["LEASE_SEC_DEFAULT"][1:] == (60, Origin.ENVIRONMENT)
    await store.settings.set("LEASE_SEC_DEFAULT", 90)
    assert (await store.settings.effective(env))["LEASE_SEC_DEFAULT"][1:] == (90, Origin.DATABASE)
    assert await store.settings.unset("LEASE_SEC_DEFAULT")
    assert not await store.settings.unset("LEASE_SEC_DEFAULT")
    assert (await store.settings.effective(env))["LEASE_SEC_DEFAULT"][1:] == (60, Origin.ENVIRONMENT)


@pytest.mark.parametrize(
    ("name", "value"),
    [("COLOUR", "blue"), ("BACKOFF_BASE_SEC", 0), ("LEASE_SEC_DEFAULT", 29), ("PICK_ORDER", "best"), ("BACKOFF_MAX_SEC", None)],
)
async def test_a_bad_setting_is_refused_by_name_and_value(store: Store, *, name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        await store.settings.set(name, value)
    assert (refused.value.field, refused.value.value) == (name, value)
    assert await store.settings.all() == []


async def test_a_setting_of_another_version_can_be_taken_away(store: Store) -> None:
    await store.settings.set("PICK_ORDER", "fair")
    await execute(store, "update windlass_settings set name = 'OLD'")
    assert (await store.settings.effective())["PICK_ORDER"].value == "fifo"
    assert await store.settings.unset("OLD")


async def test_a_changed_backoff_counts_for_the_next_failure(store: Store, clock: FakeClock) -> None:
    assert await delay_of(store, clock, a_pull()) == timedelta(seconds=30)
    await store.settings.set("BACKOFF_BASE_SEC", 100)
    assert await delay_of(store, clock, a_pull()) == timedelta(seconds=100)
    await store.settings.set("BACKOFF_MAX_SEC", 50)
    assert await delay_of(store, clock, a_pull()) == timedelta(seconds=50)
    await store.settings.unset("BACKOFF_BASE_SEC")
    await store.settings.unset("BACKOFF_MAX_SEC")
    assert await delay_of(store, clock, a_pull()) == timedelta(seconds=30)


async def test_what_the_enqueuer_gave_beats_the_settings(store: Store, clock: FakeClock) -> None:
    await store.settings.set("BACKOFF_BASE_SEC", 100)
    own = RetrySpec(profile="pull", base=timedelta(seconds=7), jitter=0.0)
    assert await delay_of(store, clock, a_pull(retry=own)) == timedelta(seconds=7)
    assert await delay_of(store, clock, a_job()) == timedelta(seconds=1)


async def test_attempts_are_those_of_the_moment_a_run_is_decided(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    await store.settings.set("MAX_ATTEMPTS_DEFAULT", 1)
    assert await fail(store, held) is JobState.FAILED
    await store.settings.set("MAX_ATTEMPTS_DEFAULT", 9)
    more = await running(store, a_pull())
    for attempt in range(1, 9):
        assert await fail(store, more) is JobState.SCHEDULED
        clock.advance(hours=1)
        await due(store)
        more = await claim_one(store)
        assert more.attempt == attempt + 1
    assert await fail(store, more) is JobState.FAILED


async def test_a_lost_lease_is_decided_by_the_settings_of_the_moment(store: Store, clock: FakeClock) -> None:
    pulled = await running(store, a_pull())
    other = await running(store, a_job())
    await store.settings.set("MAX_ATTEMPTS_DEFAULT", 1)
    clock.advance(seconds=31)
    await store.reclaim()
    assert (await store.get(pulled.id)).state is JobState.FAILED
    assert (await store.get(other.id)).state is JobState.SCHEDULED


async def test_the_environment_reaches_the_store_as_its_profiles(store: Store, clock: FakeClock) -> None:
    profiles = profiles_with(from_environment({"BACKOFF_BASE_SEC": "10", "BACKOFF_MAX_SEC": "15"}), PROFILES)
    ours = Store(store.database, store.means._replace(profiles=profiles))
    assert await delay_of(ours, clock, a_pull()) == timedelta(seconds=10)
    await store.settings.set("BACKOFF_BASE_SEC", 20)
    assert await delay_of(ours, clock, a_pull()) == timedelta(seconds=15)


async def test_a_setting_nobody_can_read_holds_up_nobody(store: Store, clock: FakeClock) -> None:
    await store.settings.set("BACKOFF_BASE_SEC", 100)
    await execute(store, "update windlass_settings set value = 'soon'")
    assert await delay_of(store, clock, a_pull()) == timedelta(seconds=30)


async def test_a_job_of_another_profile_does_not_read_the_settings(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("windlass.store.calls.settings.from_table", unread)
    held = await running(store)
    await fail(store, held)
    await end(store, clock, await running(store), failure())
    clock.advance(seconds=31)
    await store.reclaim()


async def test_changes_leave_a_line_in_the_audit_log(store: Store) -> None:
    acting = store.acting(Actor("ada"))
    assert (await acting.settings.set("PICK_ORDER", "fair")).updated_by == "ada"
    await acting.settings.unset("PICK_ORDER")
    await acting.settings.unset("PICK_ORDER")
    with pytest.raises(InvalidInput):
        await acting.settings.set("PICK_ORDER", "best")
    found = await execute(store, "select principal, action, target, outcome from windlass_audit order by id")
    assert [tuple(row) for row in found] == [
        ("ada", "set setting", "setting:PICK_ORDER", "done"),
        ("ada", "unset setting", "setting:PICK_ORDER", "done"),
        ("ada", "unset setting", "setting:PICK_ORDER", "refused"),
    ]
