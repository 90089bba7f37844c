"""Schedules by name: defined, declared, ensured, switched and let go of."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, all_jobs, claim_one, due, end, failure, recurring
from tests.support.stores import at_time
from windlass.core.audit import Actor, AuditFilter
from windlass.core.cadence import ByHandler, Cron, Every, Recurrence
from windlass.core.job import JobState, NewJob, OnConflict, WaitReason
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound, LeaseHeld, ScheduleTaken
from windlass.store import Store
from windlass.testing import FakeClock

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def a_schedule(every: timedelta = 30 * MINUTE, **options: Any) -> NewJob:
    options.setdefault("recurrence", recurring(every))
    return a_job("tick", **{"name": "tick", **options})


def declared(app: str = "shop", **options: Any) -> NewJob:
    return a_schedule(declared_by=app, **options)


async def test_a_schedule_is_made_once_and_found_by_its_name(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    assert (made.name, made.run_at) == ("tick", clock.now() + 30 * MINUTE)
    again = await at_time(store, clock.now() + MINUTE).schedules.define(a_schedule())
    assert again == made == await store.schedules.get("tick")
    with pytest.raises(JobNotFound):
        await store.schedules.get("tock")


async def test_changing_payload_or_metadata_never_moves_the_next_time(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    clock.advance(minutes=5)
    changed = a_schedule(payload='{"n":2}', metadata='{"m":1}', priority=7, lane="slow", max_attempts=9, subject="s")
    left = await store.schedules.define(changed)
    assert (left.run_at, left.slot_at, left.state) == (made.run_at, made.slot_at, made.state)
    assert (left.payload, left.metadata, left.priority, left.lane, left.max_attempts) == ({"n": 2}, {"m": 1}, 7, "slow", 9)


async def test_options_that_say_nothing_of_time_do_not_move_it_either(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    clock.advance(minutes=5)
    rule = recurring(30 * MINUTE, max_runs=5, jitter=MINUTE)
    left = await store.schedules.define(a_schedule(recurrence=rule))
    assert (left.run_at, left.recurrence) == (made.run_at, rule)


async def test_a_new_cadence_counts_from_now(store: Store, clock: FakeClock) -> None:
    await store.schedules.define(a_schedule())
    clock.advance(minutes=5)
    left = await store.schedules.define(a_schedule(HOUR))
    assert left.run_at == left.slot_at == clock.now() + HOUR


async def test_a_new_cadence_during_a_run_holds_after_it(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    clock.advance(minutes=30)
    await due(store)
    held = await claim_one(store)
    await store.schedules.define(a_schedule(HOUR))
    asked = clock.now()
    clock.advance(minutes=2)
    await end(store, clock, held)
    assert (await store.get(made.id)).slot_at == asked + HOUR


async def test_an_operators_pause_survives_a_declaration(store: Store, clock: FakeClock) -> None:
    [made] = await store.schedules.declare([declared()])
    await store.pause([made.id])
    clock.advance(minutes=5)
    for job in (declared(), declared(payload='{"n":2}'), declared(every=HOUR)):
        [left] = await store.schedules.declare([job])
        assert left.state is JobState.PAUSED


async def test_an_operators_cancel_survives_a_declaration(store: Store) -> None:
    [made] = await store.schedules.declare([declared()])
    await store.cancel([made.id])
    [left] = await store.schedules.declare([declared(every=HOUR)])
    assert (left.state, left.recurrence) == (JobState.CANCELLED, recurring(HOUR))


async def test_declaring_again_at_once_writes_nothing(store: Store, clock: FakeClock) -> None:
    [made] = await store.schedules.declare([declared()])
    clock.advance(seconds=59)
    assert await store.schedules.declare([declared()]) == [made]
    clock.advance(seconds=2)
    [left] = await store.schedules.declare([declared()])
    assert (left.declared_at, left.run_at) == (clock.now(), made.run_at)


async def test_a_name_that_another_application_declared_is_refused(store: Store) -> None:
    [made] = await store.schedules.declare([declared("shop")])
    with pytest.raises(ScheduleTaken, match="declared by application 'shop'"):
        await store.schedules.declare([declared("blog", every=HOUR)])
    with pytest.raises(ScheduleTaken):
        await store.schedules.ensure(a_schedule())
    assert await store.get(made.id) == made


async def test_a_schedule_that_nobody_declared_may_be_adopted(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    [left] = await store.schedules.declare([declared()])
    assert (left.id, left.declared_by, left.declared_at, left.run_at) == (made.id, "shop", clock.now(), made.run_at)


@pytest.mark.parametrize("other", [{"task": "tock"}, {"spawn": True}])
async def test_a_name_stays_with_its_task_and_its_kind(store: Store, other: dict[str, Any]) -> None:
    await store.schedules.define(a_schedule())
    job = NewJob(**{"task": "tick", "name": "tick", "recurrence": recurring(), **other})
    with pytest.raises(InvalidInput, match="job of task 'tick' already"):
        await store.schedules.define(job)


async def test_a_schedule_has_a_name(store: Store) -> None:
    with pytest.raises(InvalidInput, match="name"):
        await store.schedules.define(a_job(recurrence=recurring()))


async def test_what_is_declared_no_more_is_disabled_after_a_while_and_only_that(store: Store, clock: FakeClock) -> None:
    kept, gone, others, nobodys = [
        (await store.schedules.define(job)).id
        for job in (
            declared(),
            declared(name="gone"),
            declared("blog", name="others"),
            a_schedule(name="nobody's"),
        )
    ]
    clock.advance(hours=23)
    assert await store.schedules.touch_declared("shop", ["tick", "others"]) == ["tick"]
    assert (await store.schedules.prune_declared("shop", DAY)).changed == ()
    clock.advance(hours=2)
    pruned = await store.schedules.prune_declared("shop", DAY)
    assert [job.id for job in pruned.changed] == [gone]
    enabled = {job.id: job.is_enabled for job in await all_jobs(store)}
    assert enabled == {kept: True, gone: False, others: True, nobodys: True}


async def test_prune_at_once_takes_all_that_was_not_declared_since(store: Store, clock: FakeClock) -> None:
    [made] = await store.schedules.declare([declared()])
    clock.advance(seconds=1)
    acting = store.acting(Actor("ada"))
    assert (await acting.schedules.prune_declared("shop", timedelta())).one().id == made.id
    assert [line.action for line in await store.audit.list(AuditFilter())] == ["prune"]


async def test_prune_keeps_the_names_it_is_told_to(store: Store) -> None:
    await store.schedules.declare([declared(), declared(name="gone")])
    pruned = await store.schedules.prune_declared("shop", timedelta(), ["tick"])
    assert [job.name for job in pruned.changed] == ["gone"]


async def test_what_was_let_go_of_comes_back_when_it_is_declared_again(store: Store, clock: FakeClock) -> None:
    [made] = await store.schedules.declare([declared()])
    clock.advance(hours=25)
    await store.schedules.prune_declared("shop", DAY)
    assert await store.schedules.touch_declared("shop", ["tick"]) == []
    [left] = await store.schedules.declare([declared()])
    assert (left.state, left.run_at) == (JobState.SCHEDULED, made.run_at)


async def test_a_paused_schedule_is_not_let_go_of(store: Store, clock: FakeClock) -> None:
    [made] = await store.schedules.declare([declared()])
    await store.pause([made.id])
    clock.advance(hours=25)
    assert (await store.schedules.prune_declared("shop", DAY)).changed == ()
    [left] = await store.schedules.declare([declared()])
    assert left.state is JobState.PAUSED


async def test_ensure_makes_a_job_that_runs_now(store: Store, clock: FakeClock) -> None:
    job = await store.schedules.ensure(a_schedule(recurrence=Recurrence(cadence=ByHandler())))
    assert (job.state, job.run_at, job.wait_reason) == (JobState.PENDING, clock.now(), WaitReason.RECURRENCE)


@pytest.mark.parametrize("verb", ["pause", "disable"])
async def test_ensure_enables_and_keeps_the_next_time(store: Store, clock: FakeClock, verb: str) -> None:
    made = await store.schedules.ensure(a_schedule())
    await getattr(store, verb)([made.id])
    clock.advance(minutes=5)
    left = await store.schedules.ensure(a_schedule())
    assert (left.id, left.state, left.run_at) == (made.id, JobState.SCHEDULED, made.run_at)
    assert await store.schedules.ensure(a_schedule()) == left


async def test_ensure_of_a_running_job_that_was_disabled_lets_it_go_on(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.ensure(a_schedule())
    clock.advance(minutes=30)
    await due(store)
    held = await claim_one(store)
    assert not (await store.schedules.disable("tick")).is_enabled
    assert (await store.schedules.ensure(a_schedule())).is_enabled
    await end(store, clock, held)
    assert (await store.get(made.id)).state is JobState.SCHEDULED


async def test_ensure_begins_a_cancelled_job_anew(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.ensure(a_schedule(unique_key="k"))
    await store.cancel([made.id])
    clock.advance(hours=3)
    left = await store.schedules.ensure(a_schedule(unique_key="k"))
    assert (left.id, left.state, left.run_at) == (made.id, JobState.SCHEDULED, clock.now() + 30 * MINUTE)
    assert (left.done_reason, left.unique_slot) == (None, "k")


async def test_ensure_begins_a_failed_job_anew_and_closes_its_letter(store: Store) -> None:
    made = await store.schedules.ensure(a_schedule(recurrence=Recurrence(cadence=ByHandler())))
    await store.bury([made.id], "no")
    left = await store.schedules.ensure(a_schedule(recurrence=Recurrence(cadence=ByHandler())))
    assert (left.state, left.consecutive_failures, left.attempt) == (JobState.PENDING, 0, 0)
    assert [letter.closed_reason for letter in await store.list_dead_letters(made.id)] == ["retried"]


async def test_ensure_waits_for_the_worker_of_a_cancelled_run(store: Store) -> None:
    made = await store.schedules.ensure(a_schedule(recurrence=Recurrence(cadence=ByHandler())))
    await claim_one(store)
    await store.cancel([made.id])
    with pytest.raises(LeaseHeld, match="cannot begin anew job"):
        await store.schedules.ensure(a_schedule(recurrence=Recurrence(cadence=ByHandler())))


async def test_racing_ensures_make_one_job(stores: list[Store]) -> None:
    jobs = await asyncio.gather(*(stores[place % 5].schedules.ensure(a_schedule()) for place in range(20)))
    assert len({job.id for job in jobs}) == 1
    assert len(await all_jobs(stores[0])) == 1


async def test_racing_applications_share_no_name(stores: list[Store]) -> None:
    asked = [stores[place % 5].schedules.declare([declared(f"app-{place % 2}")]) for place in range(10)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, ScheduleTaken) for answer in answers) == 5
    assert len(await all_jobs(stores[0])) == 1


async def test_an_overdue_job_that_is_enabled_is_due_at_once(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.ensure(a_schedule())
    await store.schedules.disable("tick")
    clock.advance(hours=2)
    left = await store.schedules.enable("tick")
    assert (left.state, left.run_at) == (JobState.SCHEDULED, made.run_at)
    assert (await store.promote()).jobs == 1


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_a_predicate_decides_whether_a_job_goes_on(store: Store, is_wanted: bool) -> None:  # noqa: FBT001 - a case
    await store.schedules.ensure(a_schedule())
    for _ in range(2):
        left = await store.schedules.sync_enabled("tick", lambda _: is_wanted)
        assert left.is_enabled is is_wanted


async def test_a_predicate_reads_through_the_connection_that_holds_the_lock(store: Store) -> None:
    await store.schedules.ensure(a_schedule())
    if store.database.dialect == "sqlite":
        left = await store.schedules.sync_enabled("tick", lambda connection: connection.execute("select 0").fetchone()[0])
    else:

        async def asked(connection: Any) -> Any:
            return (await (await connection.execute("select 0")).fetchone())[0]

        left = await store.schedules.sync_enabled("tick", asked)
    assert left.state is JobState.PAUSED


async def test_a_predicate_that_fails_changes_nothing(store: Store) -> None:
    made = await store.schedules.ensure(a_schedule())

    def broken(_: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.schedules.sync_enabled("tick", broken)
    assert await store.get(made.id) == made


async def test_what_has_ended_is_not_enabled(store: Store) -> None:
    made = await store.schedules.ensure(a_schedule())
    await store.cancel([made.id])
    assert (await store.schedules.disable("tick")).state is JobState.CANCELLED
    with pytest.raises(InvalidTransition):
        await store.schedules.enable("tick")
    with pytest.raises(JobNotFound):
        await store.schedules.enable("tock")


async def test_of_two_who_switch_the_later_one_sees_what_the_earlier_committed(stores: list[Store]) -> None:
    await stores[0].schedules.ensure(a_schedule())
    subscribers = {"ada"}

    async def leave_and_join(place: int) -> None:
        # Whoever holds the lock sees all that was done before; nobody may decide by an older look.
        (subscribers.add if place % 2 else subscribers.discard)("ada")
        await stores[place % 5].schedules.sync_enabled("tick", lambda _: bool(subscribers))

    await asyncio.gather(*(leave_and_join(place) for place in range(20)))
    assert (await stores[0].schedules.get("tick")).is_enabled is bool(subscribers)


async def test_failures_of_a_job_whose_handler_chooses_count_and_back_off(store: Store, clock: FakeClock) -> None:
    rule = Recurrence(cadence=ByHandler(HOUR))
    made = await store.schedules.ensure(a_schedule(recurrence=rule))
    waits = []
    for failures in range(1, 5):
        await end(store, clock, await claim_one(store), failure())
        job = await store.get(made.id)
        assert (job.state, job.consecutive_failures) == (JobState.SCHEDULED, failures)
        waits.append(job.run_at - clock.now())
        clock.advance(seconds=waits[-1].total_seconds())
        await due(store)
    assert waits == [timedelta(seconds=each) for each in (1, 2, 4, 8)]
    await end(store, clock, await claim_one(store))
    job = await store.get(made.id)
    assert (job.consecutive_failures, job.run_at) == (0, clock.now() + HOUR)


async def test_on_conflict_of_a_description_does_not_matter(store: Store, clock: FakeClock) -> None:
    made = await store.schedules.define(a_schedule())
    clock.advance(minutes=5)
    for choice in OnConflict:
        left = await store.schedules.define(a_schedule(on_conflict=choice))
        assert (left.id, left.run_at) == (made.id, made.run_at)


@pytest.mark.parametrize("cadence", [Every(HOUR), Cron("0 3 * * *")])
async def test_a_template_is_declared_like_any_other(store: Store, cadence: Every | Cron) -> None:
    job = declared(recurrence=Recurrence(cadence=cadence), spawn=True)
    [made] = await store.schedules.declare([job])
    [again] = await store.schedules.declare([job])
    assert (again, made.spawn) == (made, True)
