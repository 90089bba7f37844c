"""Breakers: closed until failures in a row open them, then tried by one caller at a time over the fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest

from tests.store.builders import LEASE, a_job, a_lease, claim, due, end, enqueue_one, failure, running
from tests.support.postgres_server import PostgresServer
from tests.support.raw import execute
from tests.support.stores import fresh_postgres
from windlass.core.audit import Actor
from windlass.core.breaker import DEFAULT_OPEN, Admission, BreakerPermit, BreakerReason, BreakerSpec, BreakerState
from windlass.core.job import Claimed, JobState
from windlass.core.outcome import NO_RUN, Outcome, Released, Snoozed
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, LeaseLost
from windlass.store import Store, open_store
from windlass.store.breakers import Breakers
from windlass.store.calls.breakers import claim_probe
from windlass.testing import FakeClock

MAIL = BreakerSpec("mail", threshold=3, open_for=timedelta(seconds=60))
OPEN, HALF_OPEN, CLOSED = BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED
ADMITTED = Admission(is_admitted=True)


async def gate(store: Store, *tasks: str) -> None:
    """Register tasks whose claims the breaker gates."""
    at = 1 if store.database.dialect == "sqlite" else "now()"
    for task in tasks or ("work",):
        await execute(
            store,
            "insert into windlass_tasks (name, lane, breaker, first_seen_at, seen_at) "
            f"values ('{task}', 'default', 'mail', {at}, {at})",
        )


async def trip(store: Store) -> None:
    """Open the breaker as a process does that has seen enough."""
    assert await store.breakers.record(MAIL, succeeded=False, failures=3) is OPEN


async def trip_until_due(store: Store, clock: FakeClock) -> None:
    await trip(store)
    clock.advance(seconds=60)


async def probe(store: Store) -> Claimed | None:
    """Look and try, as a pool does."""
    return await store.claim_probe(await store.slices(), "mail", a_lease())


async def gated(store: Store, clock: FakeClock, *jobs: Any) -> list[int]:
    """Bring a gated task with jobs to the moment at which its breaker is due."""
    await gate(store)
    ids = [await enqueue_one(store, job) for job in jobs or (a_job(), a_job())]
    await trip_until_due(store, clock)
    return ids


async def probing(store: Store, clock: FakeClock, *jobs: Any) -> Claimed:
    """Bring a breaker to half-open, and give the job that tries it."""
    await gated(store, clock, *jobs)
    job = await probe(store)
    assert job is not None
    return job


async def tell(store: Store, job: Claimed, *, succeeded: bool, failures: int = 0) -> BreakerState:
    return await store.breakers.record(MAIL, succeeded=succeeded, failures=failures, job_id=job.id, token=job.token)


async def fail(store: Store, clock: FakeClock, job: Claimed) -> None:
    """End a probe as a worker does whose handler failed; its job is due again at once."""
    assert await tell(store, job, succeeded=False) is OPEN
    assert await end(store, clock, job, failure())
    clock.advance(seconds=60)
    await due(store)


async def state(store: Store) -> BreakerState:
    found = await store.breakers.get("mail")
    return CLOSED if found is None else found.state


async def reasons(store: Store) -> list[str]:
    """Read the history, oldest first."""
    return [event.reason.value for event in reversed(await store.breakers.history("mail"))]


async def version(store: Store) -> int:
    return (await store.slices()).version


def impatient(**options: Any) -> Any:
    return a_job(retry=RetrySpec(base=timedelta(), cap=timedelta(), jitter=0.0), max_attempts=50, **options)


async def test_a_breaker_without_a_row_is_closed(store: Store) -> None:
    assert await store.breakers.admit(MAIL) == ADMITTED
    assert await store.breakers.get("mail") is None
    assert await store.breakers.list() == []
    assert await store.breakers.history("mail") == []


async def test_too_few_failures_change_nothing(store: Store) -> None:
    before = await version(store)
    assert await store.breakers.record(MAIL, succeeded=False, failures=2) is CLOSED
    assert await store.breakers.record(MAIL, succeeded=True, failures=9) is CLOSED
    assert await store.breakers.list() == []
    assert await version(store) == before


async def test_failures_in_a_row_open_it_for_everybody(store: Store, clock: FakeClock) -> None:
    await trip(store)
    probe_at = clock.now() + timedelta(seconds=60)
    [found] = await store.breakers.list()
    assert (found.name, found.state, found.failures, found.threshold) == ("mail", OPEN, 3, 3)
    assert (found.opened_at, found.last_failure_at, found.probe_at) == (clock.now(), clock.now(), probe_at)
    clock.advance(seconds=59)
    assert await store.breakers.admit(MAIL) == Admission(is_admitted=False, probe_at=probe_at)


async def test_a_row_changes_only_with_its_state(store: Store, clock: FakeClock) -> None:
    await trip(store)
    moved = await version(store)
    before = await store.breakers.get("mail")
    clock.advance(seconds=5)
    await trip(store)
    assert await store.breakers.record(MAIL, succeeded=True) is OPEN
    assert await store.breakers.admit(MAIL) != ADMITTED
    after = await store.breakers.get("mail")
    assert before is not None
    assert after == replace(before, read_at=clock.now())
    assert await reasons(store) == ["failures"]
    assert await version(store) == moved


async def test_an_open_breaker_holds_its_task_back_and_burns_no_attempts(store: Store, clock: FakeClock) -> None:
    await gate(store)
    held = await enqueue_one(store)
    free = await enqueue_one(store, a_job("other"))
    await trip(store)
    clock.advance(seconds=59)
    found = await store.slices()
    assert [(part.task, part.breaker) for part in found.open] == [("other", None)]
    assert [job.id for job in await claim(store)] == [free]
    assert await probe(store) is None
    job = await store.get(held)
    assert (job.state, job.attempt, job.executions) == (JobState.PENDING, 0, 0)


async def test_a_claim_made_from_slices_read_before_it_opened_takes_nothing(store: Store) -> None:
    await gate(store)
    await enqueue_one(store)
    seen_before = await store.slices()
    await trip(store)
    assert await store.claim(seen_before, 10, a_lease()) == []


async def test_a_breaker_that_is_due_lets_exactly_one_job_through(store: Store, clock: FakeClock) -> None:
    first, second = await gated(store, clock)
    found = await store.slices()
    assert [part.breaker for part in found.open] == ["mail"]
    assert await store.claim(found, 10, a_lease()) == []
    job = await store.claim_probe(found, "mail", a_lease("anna"))
    assert job is not None
    row = await store.get(first)
    assert (job.id, row.state, row.worker, row.started_at) == (first, JobState.RUNNING, "anna", clock.now())
    breaker = await store.breakers.get("mail")
    assert breaker is not None
    assert (breaker.state, breaker.half_opened_at) == (HALF_OPEN, clock.now())
    assert (breaker.probe, breaker.last_probe_job_id, breaker.is_probe_alive) == (BreakerPermit(first, job.token), first, True)
    assert await store.claim_probe(found, "mail", a_lease()) is None
    assert (await store.slices()).open == ()
    assert (await store.get(second)).state is JobState.PENDING


async def test_of_many_that_look_at_once_one_is_the_probe(store: Store, clock: FakeClock) -> None:
    await gated(store, clock, *[a_job() for _ in range(8)])
    found = await store.slices()
    tried = await asyncio.gather(*(store.claim_probe(found, "mail", a_lease()) for _ in range(8)))
    assert len([job for job in tried if job is not None]) == 1
    assert await reasons(store) == ["failures", "probe_started"]


async def test_jobs_and_callers_without_a_job_share_the_one_permit(store: Store, clock: FakeClock) -> None:
    await gated(store, clock, *[a_job() for _ in range(4)])
    found = await store.slices()
    answers = await asyncio.gather(
        *(store.claim_probe(found, "mail", a_lease()) for _ in range(4)),
        *(store.breakers.admit(MAIL) for _ in range(4)),
    )
    probes = [answer for answer in answers if isinstance(answer, Claimed) or (answer is not None and answer.is_probe)]
    assert len(probes) == 1


async def test_who_waited_for_a_probe_to_begin_sees_that_it_lives(postgres_server: PostgresServer, clock: FakeClock) -> None:
    """A statement that waits for the breaker's lock sees the breaker anew but the jobs as they were before."""
    with fresh_postgres(postgres_server) as dsn:
        store = open_store(dsn, rng=Random(1)).at(clock)
        [first, _] = await gated(store, clock)
        found = await store.slices()
        async with await psycopg.AsyncConnection.connect(dsn) as rival, asyncio.TaskGroup() as group:
            begun = claim_probe(found, "mail", a_lease())
            assert await store.run(begun, rival) is not None
            waiting = group.create_task(store.breakers.admit(MAIL))
            while not await execute(store, "select 1 from pg_locks where not granted"):
                assert not waiting.done()
            await rival.commit()
        assert not waiting.result().is_admitted
        breaker = await store.breakers.get("mail")
        await store.aclose()
    assert breaker is not None
    assert (breaker.state, breaker.probe.job_id) == (HALF_OPEN, first)


async def test_racing_reports_open_it_once(store: Store) -> None:
    told = [store.breakers.record(MAIL, succeeded=False, failures=3) for _ in range(8)]
    assert set(await asyncio.gather(*told)) == {OPEN}
    assert await reasons(store) == ["failures"]


async def test_a_success_closes_it_for_all(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    assert await tell(store, job, succeeded=True) is CLOSED
    assert await store.breakers.admit(MAIL) == ADMITTED
    assert [part.breaker for part in (await store.slices()).open] == [None]
    assert len(await claim(store)) == 1
    found = await store.breakers.get("mail")
    assert found is not None
    assert (found.failures, found.successes, found.probe_at, found.probe) == (0, 1, None, BreakerPermit())


async def test_a_failure_reopens_it_and_the_wait_starts_anew(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    clock.advance(seconds=10)
    assert await tell(store, job, succeeded=False) is OPEN
    found = await store.breakers.get("mail")
    assert found is not None
    assert (found.failures, found.probe_at) == (4, clock.now() + timedelta(seconds=60))
    assert await end(store, clock, job, failure())
    clock.advance(seconds=59)
    assert await probe(store) is None
    clock.advance(seconds=1)
    assert await probe(store) is not None
    assert await reasons(store) == ["failures", "probe_started", "probe_failed", "probe_started"]


async def test_the_permit_dies_with_the_lease_of_the_probe(store: Store, clock: FakeClock) -> None:
    lost = await probing(store, clock)
    clock.advance(seconds=LEASE.total_seconds())
    assert await probe(store) is None, "an expired lease may still be renewed"
    assert await store.reclaim() == [lost.id]
    found = await store.slices()
    tried = await asyncio.gather(*(store.claim_probe(found, "mail", a_lease()) for _ in range(4)))
    [again] = [job for job in tried if job is not None]
    assert again.id != lost.id
    assert await tell(store, lost, succeeded=True) is HALF_OPEN
    assert await tell(store, lost, succeeded=False, failures=3) is HALF_OPEN
    assert await tell(store, again, succeeded=True) is CLOSED


async def test_a_holder_that_lost_its_lease_changes_nothing_even_before_the_next_probe(store: Store, clock: FakeClock) -> None:
    lost = await probing(store, clock)
    clock.advance(seconds=LEASE.total_seconds())
    await store.reclaim()
    assert await tell(store, lost, succeeded=True) is HALF_OPEN
    assert await reasons(store) == ["failures", "probe_started"]
    with pytest.raises(LeaseLost):
        await store.breakers.admit(MAIL, job_id=lost.id, token=lost.token)


@pytest.mark.parametrize("outcome", [Released(has_started=True), Snoozed(timedelta(minutes=5))])
async def test_a_probe_that_ends_without_a_word_gives_the_permit_back(store: Store, clock: FakeClock, outcome: Outcome) -> None:
    job = await probing(store, clock)
    assert await end(store, clock, job, outcome)
    assert await state(store) is HALF_OPEN
    assert await probe(store) is not None


async def test_a_cancelled_probe_holds_the_permit_until_it_has_stopped(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    await store.cancel([job.id])
    assert await probe(store) is None
    await store.stop([(job.id, job.token, NO_RUN)])
    assert await probe(store) is not None


async def test_a_poison_job_is_not_every_probe(store: Store, clock: FakeClock) -> None:
    poison = await probing(store, clock, impatient(priority=9), impatient(), impatient())
    await fail(store, clock, poison)
    assert (await store.get(poison.id)).state is JobState.PENDING
    other = await probe(store)
    assert other is not None
    assert other.id != poison.id
    await fail(store, clock, other)
    again = await probe(store)
    assert again is not None
    assert again.id == poison.id


async def test_a_poison_job_alone_in_its_slice_leaves_the_probe_to_another_slice(store: Store, clock: FakeClock) -> None:
    poison = await probing(store, clock, impatient(priority=9, lane="fast"), impatient())
    await fail(store, clock, poison)
    other = await probe(store)
    assert other is not None
    assert other.id != poison.id


async def test_the_only_job_there_is_tries_again(store: Store, clock: FakeClock) -> None:
    only = await probing(store, clock, impatient())
    await fail(store, clock, only)
    again = await probe(store)
    assert again is not None
    assert again.id == only.id


async def test_tasks_that_share_a_breaker_share_the_probe(store: Store, clock: FakeClock) -> None:
    await gate(store, "a", "b")
    await enqueue_one(store, a_job("a"))
    await enqueue_one(store, a_job("b"))
    await trip_until_due(store, clock)
    assert await probe(store) is not None
    assert (await store.slices()).open == ()


async def test_without_a_pending_job_the_permit_is_not_taken(store: Store, clock: FakeClock) -> None:
    [first, second] = await gated(store, clock)
    found = await store.slices()
    await store.cancel([first, second])
    before = await version(store)
    assert await store.claim_probe(found, "mail", a_lease()) is None
    assert (await state(store), await version(store)) == (OPEN, before)


async def test_a_gate_that_closed_since_the_look_stops_the_probe(store: Store, clock: FakeClock) -> None:
    [job, _] = await gated(store, clock)
    found = await store.slices()
    await execute(store, "update windlass_gates set version = version + 1")
    assert await store.claim_probe(found, "mail", a_lease()) is None
    assert (await state(store), (await store.get(job)).attempt) == (OPEN, 0)


async def test_a_probe_from_a_look_before_it_closed_takes_nothing(store: Store, clock: FakeClock) -> None:
    await gated(store, clock)
    found = await store.slices()
    await store.breakers.reset("mail")
    assert await store.claim_probe(found, "mail", a_lease()) is None
    assert await store.claim_probe(found, "unknown", a_lease()) is None


async def test_forced_open_stays_open_until_it_is_reset(store: Store, clock: FakeClock) -> None:
    await gate(store)
    job = await running(store)
    forced = await store.breakers.force_open("mail")
    assert (forced.state, forced.is_forced, forced.probe_at) == (OPEN, True, None)
    assert await tell(store, job, succeeded=True) is OPEN
    assert await tell(store, job, succeeded=False, failures=3) is OPEN
    clock.advance(days=3)
    await enqueue_one(store)
    assert (await store.slices()).open == ()
    assert await probe(store) is None
    ask_again = Admission(is_admitted=False, probe_at=clock.now() + DEFAULT_OPEN)
    assert await store.breakers.admit(MAIL) == ask_again
    left = await store.breakers.reset("mail")
    assert left is not None
    assert (left.state, left.is_forced) == (CLOSED, False)
    assert len(await claim(store)) == 1
    assert await reasons(store) == ["forced", "reset"]


async def test_forced_open_for_a_while_is_tried_after_it(store: Store, clock: FakeClock) -> None:
    await gate(store)
    await enqueue_one(store)
    await store.breakers.force_open("mail", timedelta(hours=1))
    clock.advance(minutes=59)
    assert await probe(store) is None
    clock.advance(minutes=1)
    job = await probe(store)
    assert job is not None
    assert await tell(store, job, succeeded=True) is CLOSED


async def test_a_row_that_an_operator_made_waits_as_long_as_the_code_says(store: Store, clock: FakeClock) -> None:
    hasty = BreakerSpec("mail", threshold=3, open_for=timedelta(seconds=5))
    await store.breakers.force_open("mail")
    later = clock.now() + hasty.open_for
    assert await store.breakers.admit(hasty) == Admission(is_admitted=False, probe_at=later)
    await store.breakers.force_open("mail", timedelta(seconds=1))
    clock.advance(seconds=1)
    assert (await store.breakers.admit(hasty)).is_probe
    assert not (await store.breakers.admit(hasty)).is_admitted
    clock.advance(seconds=5)
    assert (await store.breakers.admit(hasty)).is_probe


async def test_forcing_it_open_ends_the_permit_of_a_probe(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    await store.breakers.force_open("mail")
    assert await tell(store, job, succeeded=True) is OPEN
    assert (await store.breakers.list())[0].is_forced


@pytest.mark.parametrize("succeeded", [True, False])
async def test_a_reset_during_a_probe_wins(store: Store, clock: FakeClock, *, succeeded: bool) -> None:
    job = await probing(store, clock)
    await store.breakers.reset("mail")
    assert await tell(store, job, succeeded=succeeded) is CLOSED
    assert len(await claim(store)) == 1
    assert await reasons(store) == ["failures", "probe_started", "reset"]


async def test_resetting_what_is_closed_changes_nothing(store: Store) -> None:
    before = await version(store)
    assert await store.breakers.reset("mail") is None
    assert await version(store) == before
    await trip(store)
    await store.breakers.reset("mail")
    left = await store.breakers.reset("mail")
    assert left is not None
    assert left.state is CLOSED
    assert await reasons(store) == ["failures", "reset"]


async def test_a_handler_is_admitted_as_the_probe_and_stays_it(store: Store, clock: FakeClock) -> None:
    job = await running(store, a_job("free"))
    await trip(store)
    clock.advance(seconds=60)
    as_probe = Admission(is_admitted=True, is_probe=True, token=job.token)
    assert await store.breakers.admit(MAIL, job_id=job.id, token=job.token) == as_probe
    assert await store.breakers.admit(MAIL, job_id=job.id, token=job.token) == as_probe
    ask_again = Admission(is_admitted=False, probe_at=clock.now() + timedelta(seconds=60))
    assert await store.breakers.admit(MAIL) == ask_again
    assert await tell(store, job, succeeded=True) is CLOSED
    assert await reasons(store) == ["failures", "probe_started", "probe_succeeded"]


async def test_a_job_claimed_as_the_probe_may_use_the_breaker_itself(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    admission = await store.breakers.admit(MAIL, job_id=job.id, token=job.token)
    assert admission.is_probe
    assert await tell(store, job, succeeded=False) is OPEN
    assert await tell(store, job, succeeded=False, failures=1) is OPEN
    assert await reasons(store) == ["failures", "probe_started", "probe_failed"]


async def test_a_permit_without_a_job_ends_after_a_while(store: Store, clock: FakeClock) -> None:
    await trip_until_due(store, clock)
    first = await store.breakers.admit(MAIL)
    assert first.is_probe
    clock.advance(seconds=59)
    assert not (await store.breakers.admit(MAIL)).is_admitted
    clock.advance(seconds=1)
    second = await store.breakers.admit(MAIL)
    assert second.is_probe
    assert first.token != second.token
    assert await store.breakers.record(MAIL, succeeded=True, token=first.token) is HALF_OPEN
    assert await store.breakers.record(MAIL, succeeded=True) is HALF_OPEN
    assert await store.breakers.record(MAIL, succeeded=True, token=second.token) is CLOSED


async def test_a_late_result_without_a_job_counts_while_nobody_took_its_place(store: Store, clock: FakeClock) -> None:
    await trip_until_due(store, clock)
    admission = await store.breakers.admit(MAIL)
    clock.advance(hours=1)
    assert await store.breakers.record(MAIL, succeeded=True, token=admission.token) is CLOSED


async def test_the_history_tells_every_change_with_its_job(store: Store, clock: FakeClock) -> None:
    job = await probing(store, clock)
    await tell(store, job, succeeded=True)
    closed, started, _ = await store.breakers.history("mail")
    assert closed[1:] == ("mail", CLOSED, BreakerReason.PROBE_SUCCEEDED, job.id, clock.now())
    assert (started.state, started.reason, started.job_id) == (HALF_OPEN, BreakerReason.PROBE_STARTED, job.id)
    assert await store.breakers.history("mail", 1) == [closed]
    assert await store.breakers.history("other") == []


async def test_every_change_moves_the_gates(store: Store, clock: FakeClock) -> None:
    versions = [await version(store)]
    job = await probing(store, clock)
    versions.append(await version(store))
    await tell(store, job, succeeded=False)
    versions.append(await version(store))
    await store.breakers.force_open("mail")
    versions.append(await version(store))
    await store.breakers.reset("mail")
    versions.append(await version(store))
    assert versions == [1, 3, 4, 5, 6]


async def test_breakers_are_listed_by_name(store: Store) -> None:
    for name in ("b", "a", "c"):
        await store.breakers.force_open(name)
    assert [found.name for found in await store.breakers.list(limit=2)] == ["a", "b"]
    assert [found.name for found in await store.breakers.list(after="b")] == ["c"]
    assert await store.breakers.count() == (3, True)


async def test_what_operators_do_is_audited(store: Store) -> None:
    acting = store.acting(Actor("ada")).breakers
    await acting.force_open("mail", timedelta(minutes=1))
    await acting.reset("mail")
    await acting.reset("unknown")
    found = await execute(store, "select principal, action, target, outcome from windlass_audit order by id")
    assert found == [
        ("ada", "force open", "breaker:mail", "done"),
        ("ada", "reset", "breaker:mail", "done"),
        ("ada", "reset", "breaker:unknown", "refused"),
    ]


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("token", lambda breakers: breakers.admit(MAIL, token=1)),
        ("token", lambda breakers: breakers.admit(MAIL, job_id=1)),
        ("job_id", lambda breakers: breakers.admit(MAIL, job_id=0, token=1)),
        ("failures", lambda breakers: breakers.record(MAIL, succeeded=False, failures=-1)),
        ("job_id", lambda breakers: breakers.record(MAIL, succeeded=True, job_id=2**63, token=1)),
        ("token", lambda breakers: breakers.record(MAIL, succeeded=True, token=2**63)),
        ("breaker", lambda breakers: breakers.reset("")),
        ("breaker", lambda breakers: breakers.get("a\0b")),
        ("breaker", lambda breakers: breakers.force_open("x" * 10_000)),
        ("for", lambda breakers: breakers.force_open("mail", timedelta())),
        ("limit", lambda breakers: breakers.history("mail", 0)),
        ("limit", lambda breakers: breakers.list(limit=0)),
        ("after", lambda breakers: breakers.list(after="a\0b")),
    ],
)
async def test_bad_input_is_refused_before_anything_is_written(
    store: Store, field: str, ask: Callable[[Breakers], Awaitable[object]]
) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        await ask(store.breakers)
    assert await store.breakers.list() == []


async def test_old_changes_are_forgotten_but_for_the_last_of_each(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        await store.breakers.record(MAIL, succeeded=False, failures=3)
        await store.breakers.reset("mail")
    clock.advance(days=31)
    assert await store.breakers.prune_events(limit=2) == 2
    await store.breakers.force_open("mail")
    assert await store.breakers.prune_events() == 4
    assert await store.breakers.prune_events() == 0
    assert [event.state for event in await store.breakers.history("mail")] == [OPEN]


async def test_a_breaker_that_only_suspects_wait_for_is_tried_with_one(store: Store, clock: FakeClock) -> None:
    lost = await running(store, a_job("send"))
    clock.advance(seconds=31)
    await store.reclaim()
    await due(store)
    await gate(store, "send")
    await trip_until_due(store, clock)
    found = await store.slices()
    assert (found.open, found.breakers) == ((), ("mail",))
    assert await store.claim_suspects(found, 1, a_lease()) == []
    tried = await store.claim_probe(found, "mail", a_lease())
    assert tried is not None
    assert (tried.id, tried.crashes) == (lost.id, 1)
