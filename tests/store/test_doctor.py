"""Every rule of the doctor is broken by hand on a store that has lived, and must be the one that is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.store.builders import LEASE, a_job, a_lease, ending, failure, recurring
from tests.support.raw import execute
from tests.support.stores import BACKENDS, fresh_url, memory_store
from windlass.core.cadence import OnExhausted
from windlass.core.job import Claimed, Edit, JobState, NewJob, OnConflict, UniqueScope
from windlass.core.outcome import NO_RUN, Cancelled, Outcome, Released, Returned, Run, Snoozed
from windlass.core.retention import Retention
from windlass.core.retry import PROFILES
from windlass.errors import StoreError
from windlass.store import Store, doctor, open_store
from windlass.store.calls.call import Call, Means
from windlass.store.doctor import BrokenRule, check
from windlass.store.postgres import Postgres, _drive_async
from windlass.store.sqlite import Sqlite, _drive
from windlass.testing import FakeClock

NOWHERE = 999_999


class Life:
    """A store and the jobs in it, by the name of their task."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store.at(clock)
        self.clock = clock
        self.ids: dict[str, int] = {}
        self.refusals: dict[Broken, str] = {}
        """What the database said to each broken row, before its rules were dropped."""

    async def enqueue(self, task: str, job: NewJob | None = None) -> int:
        [enqueued] = await self.store.enqueue([replace(job or a_job(), task=task)])
        self.ids.setdefault(task, enqueued.id)
        return enqueued.id

    async def claim(self, task: str, *, started: bool = True) -> Claimed:
        self.clock.advance(seconds=1)
        found = await self.store.slices()
        found = found._replace(open=tuple(part for part in found.open if part.task == task))
        [job] = await self.store.claim(found, 1, a_lease(), started=started)
        return job

    async def run(self, task: str, *outcomes: Outcome) -> None:
        """Run the job once for each outcome, whenever it is due."""
        for outcome in outcomes:
            await self.store.run_now([self.ids[task]])
            job = await self.claim(task)
            self.clock.advance(seconds=2)
            await self.store.finish([ending(job, self.clock.now(), outcome)])

    async def live(self, task: str, job: NewJob, *outcomes: Outcome) -> int:
        await self.enqueue(task, job)
        await self.run(task, *outcomes)
        return self.ids[task]

    async def problems(self, *statements: str, **options: Any) -> list[BrokenRule]:
        """Say what the doctor finds after these statements, and take them back."""
        database = self.store.database
        if isinstance(database, Sqlite):
            return await asyncio.to_thread(_problems_in_sqlite, database, statements, self.clock, options)
        assert isinstance(database, Postgres)
        async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
            for statement in statements:
                await connection.execute(statement)
            found = await check(inside(lambda call: _drive_async(connection, call), self.clock), **options)
            await connection.rollback()
            return found

    async def broken(self, *statements: str, **options: Any) -> set[tuple[str, int | None]]:
        """Say which rules are broken after these statements; each must be reported once for a job."""
        found = await self.problems(*statements, **options)
        assert len(found) == len({problem[:2] for problem in found})
        assert all(problem.detail for problem in found)
        return {(problem.rule, problem.job_id) for problem in found}


def inside(run: Callable[[Call[Any]], Awaitable[Any]], clock: FakeClock) -> Store:
    """Give the store as one open transaction sees it; only reads work there."""
    database: Any = SimpleNamespace(run=run)
    return Store(database, Means(Random(0), clock=clock))


class Undo(Exception):
    """Rolls a transaction back and carries out what was found in it."""

    def __init__(self, found: list[BrokenRule]) -> None:
        self.found = found


def _problems_in_sqlite(
    database: Sqlite, statements: Sequence[str], clock: FakeClock, options: dict[str, Any]
) -> list[BrokenRule]:
    def work(connection: Any) -> None:
        async def run(call: Call[Any]) -> Any:
            return _drive(connection, database.queries, call)

        for statement in statements:
            connection.execute(statement)
        raise Undo(asyncio.run(check(inside(run, clock), **options)))

    with pytest.raises(Undo) as undo:
        database.run_script(work)
    return undo.value.found


async def lead(life: Life) -> None:
    """Take jobs through everything that the store can do with them."""
    await _end_jobs(life)
    await _come_back(life)
    await _hold_keys(life)
    await _stop_jobs(life)
    await _wait(life)


async def _end_jobs(life: Life) -> None:
    await life.live("completed", a_job(), Returned('{"found":3}'))
    await life.live("failed", a_job(max_attempts=2), failure(), failure())
    await life.live("acknowledged", a_job(max_attempts=1), failure())
    await execute(
        life.store,
        "update windlass_dead_letters set acknowledged_at = died_at, acknowledged_by = 'ada' "
        f"where job_id = {life.ids['acknowledged']}",
    )
    saved = await life.live("saved", a_job(max_attempts=1), failure())
    await life.store.retry([saved])
    await life.run("saved", Returned())
    edited = await life.live("edited", a_job(max_attempts=2), failure(), failure())
    await life.store.edit(edited, Edit(max_attempts=1))
    await life.live("unlimited", a_job(), failure())
    await life.live("gave_up", a_job(), Cancelled("no longer needed"))
    await life.live("retrying", a_job(max_attempts=5), Snoozed(timedelta(seconds=5)), Released(has_started=True), failure())
    await life.live("crashing", a_job(max_attempts=5), failure())
    await life.store.run_now([life.ids["crashing"]])
    await life.claim("crashing")
    await life.enqueue("lost", a_job())
    await life.claim("lost", started=False)
    life.clock.advance(seconds=LEASE.total_seconds() + 1)
    await life.store.reclaim()


async def _come_back(life: Life) -> None:
    await life.live("recurring", a_job(recurrence=recurring(), name="every half hour"), Returned(), failure(), Returned())
    await life.live("ended", a_job(recurrence=recurring(max_runs=1), name="once"), Returned())
    await life.live("mourned", a_job(recurrence=recurring(), max_attempts=1), failure(), failure())
    await life.live("healed", a_job(recurrence=recurring(), max_attempts=1), failure(), Returned())
    await life.live("broken", a_job(recurrence=recurring(on_exhausted=OnExhausted.FAIL), max_attempts=1), failure())
    await life.enqueue("template", a_job(recurrence=recurring(), spawn=True, name="template", child_key="child"))
    await life.store.spawn()
    await life.enqueue("last_template", a_job(recurrence=recurring(max_runs=1), spawn=True))
    await life.store.spawn()
    held = await life.live("held", a_job(recurrence=recurring()), Returned())
    await life.store.pause([held])
    await life.store.run_now([held])


async def _hold_keys(life: Life) -> None:
    pending = a_job(unique_key="p", unique_scope=UniqueScope.PENDING, max_attempts=5)
    await life.enqueue("pending_key", pending)
    await life.live("pending_done", pending, Returned())
    await life.enqueue("pending_running", pending)
    await life.claim("pending_running")
    await life.enqueue("superseded", pending)
    first = await life.claim("superseded")
    await life.store.enqueue([replace(pending, task="superseded")])
    await life.store.finish([ending(first, life.clock.now(), failure())])
    active = a_job(unique_key="a")
    await life.enqueue("active_key", active)
    await life.store.enqueue([replace(active, task="active_key", on_conflict=OnConflict.REPLACE)])
    await life.live("active_done", active, Returned())
    forever = a_job(unique_key="f", unique_scope=UniqueScope.FOREVER)
    await life.live("forever_done", forever, Returned())
    await life.enqueue("rerun", active)
    await life.claim("rerun")
    await life.store.enqueue([replace(active, task="rerun", on_conflict=OnConflict.RERUN)])


async def _stop_jobs(life: Life) -> None:
    store, _clock = life.store, life.clock
    await store.cancel([await life.enqueue("cancelled", a_job(unique_key="c"))], "not wanted")
    for task, started in (("stopping", True), ("stopping_unstarted", False), ("stopped", True), ("stopped_late", False)):
        await life.enqueue(task, a_job(unique_key="s"))
        job = await life.claim(task, started=started)
        await store.cancel([job.id])
        if task == "stopped":
            await store.stop([(job.id, job.token, NO_RUN)])
        if task == "stopped_late":
            await store.stop([(job.id, job.token, Run(started_at=job.claimed_at))])


async def _wait(life: Life) -> None:
    store, _clock = life.store, life.clock
    await life.enqueue("pending")
    await life.enqueue("scheduled", a_job(delay=timedelta(hours=1)))
    await store.pause([await life.enqueue("paused", a_job(delay=timedelta(hours=1)))])
    await store.disable([await life.enqueue("disabled", a_job(recurrence=recurring()))])
    await life.enqueue("running", a_job())
    running = await life.claim("running")
    await store.renew([(running.id, running.token, running.claimed_at)], LEASE)
    await store.progress(running.id, running.token, count=3, cursor="page 2")
    await life.enqueue("prefetched")
    await life.claim("prefetched", started=False)
    await life.live("ticking", a_job(recurrence=recurring()), Returned())
    await store.run_now([life.ids["ticking"]])
    ticking = await life.claim("ticking")
    await store.disable([ticking.id])
    await store.run_now([ticking.id])


@pytest.fixture(scope="module", params=BACKENDS)
async def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Life]:
    """Give a store full of jobs whose tables no longer refuse anything; what a test writes there is taken back."""
    with ExitStack() as stack:
        if request.param == "sqlite-memory":
            opened = memory_store(Random(0))
        else:
            server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
            opened = open_store(
                stack.enter_context(fresh_url(request.param, tmp_path_factory.mktemp("life"), server)), rng=Random(0)
            )
        try:
            full = Life(opened, FakeClock())
            await lead(full)
            full.refusals = {broken: await refusal_of(full, broken) for broken in BROKEN if broken.is_refused}
            await drop_checks(opened)
            yield full
        finally:
            await opened.aclose()


async def drop_checks(store: Store) -> None:
    if isinstance(store.database, Sqlite):
        await execute(store, "pragma ignore_check_constraints = on")
        return
    for when in ("inserted", "updated"):
        await execute(store, f"drop trigger windlass_jobs_checked_{when} on windlass_jobs")
    checks = "select conrelid::regclass::text, conname from pg_constraint where contype = 'c' and conname like 'windlass%'"
    for table, name in await execute(store, checks):
        await execute(store, f"alter table {table} drop constraint {name}")


class Broken(NamedTuple):
    """A statement on one job's rows, and the rule it breaks."""

    rule: str
    task: str
    change: str
    table: str = "windlass_jobs"
    where: str = "true"

    @property
    def key(self) -> str:
        return "id" if self.table == "windlass_jobs" else "job_id"

    @property
    def is_refused(self) -> bool:
        """Whether the tables themselves refuse it: whatever one row of jobs says about itself."""
        return self.table == "windlass_jobs" and self.rule in HELD_BY_TABLES

    def statement(self, job_id: int) -> str:
        return f"update {self.table} set {self.change} where {self.key} = {job_id} and {self.where}"


HELD_BY_TABLES = {
    *("task", "lane", "state", "wait_reason", "waiting", "closed", "paused", "lease", "run_marks", "rerun_slot", "stop", "held"),
    *("slot", "template", "priority", "max_attempts", "counters", "unique_key", "unique_scope", "unique_slot", "name"),
}


async def refusal_of(life: Life, broken: Broken) -> str:
    """Return what the database says to a broken row."""
    try:
        await execute(life.store, broken.statement(life.ids[broken.task]))
    except (StoreError, psycopg.Error) as error:
        return str(error)
    return "nothing"


def executions(rule: str, task: str, change: str, where: str = "true") -> Broken:
    return Broken(rule, task, change, "windlass_executions", where)


def letters(rule: str, task: str, change: str) -> Broken:
    return Broken(rule, task, change, "windlass_dead_letters")


BROKEN = [
    Broken("state", "pending", "state = 'bogus'"),
    Broken("state", "completed", "state = 'dead'"),
    Broken("task", "completed", "task = ''"),
    Broken("lane", "completed", "lane = ''"),
    Broken("wait_reason", "pending", "wait_reason = 'bogus'"),
    Broken("waiting", "pending", "wait_reason = null"),
    Broken("waiting", "completed", "wait_reason = 'new'"),
    Broken("waiting", "running", "wait_reason = 'retry'"),
    Broken("closed", "completed", "closed_at = null"),
    Broken("closed", "pending", "closed_at = created_at"),
    Broken("paused", "paused", "paused_at = null"),
    Broken("paused", "pending", "paused_at = created_at"),
    Broken("lease", "running", "worker = null"),
    Broken("lease", "running", "claimed_at = null"),
    Broken("lease", "pending", "worker = 'worker-1'"),
    Broken("lease", "stopped", "lease_expires_at = updated_at"),
    Broken("lease", "completed", "token = -1, worker = 'w', claimed_at = created_at, lease_expires_at = updated_at"),
    Broken("run_marks", "pending", "rerun_at = created_at"),
    Broken("run_marks", "recurring", "stop_requested = true"),
    Broken("rerun_slot", "running", "rerun_slot_at = created_at"),
    Broken("stop", "running", "stop_requested = true"),
    Broken("held", "paused", "held = true"),
    Broken("held", "completed", "held = true"),
    Broken("slot", "pending", "slot_at = created_at"),
    Broken("template", "template", "state = 'pending'"),
    Broken("template", "ticking", "spawn = true"),
    Broken("priority", "pending", "base_priority = priority + 1"),
    Broken("max_attempts", "pending", "max_attempts = 0"),
    Broken("max_attempts", "pending", "max_attempts = 1000001"),
    Broken("counters", "pending", "attempt = -1"),
    Broken("counters", "pending", "crashes = -1"),
    Broken("counters", "pending", "progress_count = -1"),
    Broken("counters", "pending", "target_count = -1"),
    Broken("counters", "pending", "timeout_us = 0"),
    Broken("charges", "pending", "attempt = 1"),
    Broken("charges", "pending", "consecutive_failures = 1"),
    Broken("charges", "pending", "completed_runs = 1"),
    Broken("attempts", "retrying", "max_attempts = 1"),
    Broken("attempts", "crashing", "max_attempts = 1"),
    Broken("unique_key", "completed", "unique_key = '', unique_scope = 'active'"),
    Broken("unique_scope", "completed", "unique_scope = 'active'"),
    Broken("unique_scope", "active_key", "unique_scope = 'bogus'"),
    Broken("unique_scope", "active_done", "unique_scope = null"),
    Broken("unique_slot", "active_key", "unique_slot = 'other'"),
    Broken("slot_held", "pending_key", "unique_slot = null"),
    Broken("slot_held", "pending_running", "unique_slot = unique_key"),
    Broken("slot_held", "pending_done", "unique_slot = unique_key"),
    Broken("slot_held", "active_key", "unique_slot = null"),
    Broken("slot_held", "active_done", "unique_slot = unique_key"),
    Broken("slot_held", "rerun", "unique_slot = null"),
    Broken("slot_held", "stopping", "unique_slot = null"),
    Broken("slot_held", "stopped", "unique_slot = unique_key"),
    Broken("slot_held", "forever_done", "unique_slot = null"),
    Broken("name", "pending", "name = 'one-shot'"),
    Broken("name", "recurring", "name = ''"),
    Broken("executions", "pending", "executions = 1"),
    Broken("executions", "running", "executions = 3"),
    Broken("last_run", "completed", "started_at = created_at"),
    Broken(
        "last_run",
        "stopping_unstarted",
        "started_at = created_at, finished_at = created_at, token = null, "
        "worker = null, lease_expires_at = null, unique_slot = null",
    ),
    Broken("token_runs", "stopping", "token = -1"),
    Broken("retry", "pending", "retry = 'bogus'"),
    Broken("retry", "pending", """retry = '{"profile":"task","tries":1}'"""),
    Broken("retry", "pending", "retry = '{'"),
    Broken("cadence", "recurring", "cadence = 'bogus'"),
    Broken("cadence", "recurring", "cadence = '[]'"),
    Broken("cadence", "recurring", "cadence = '{}'"),
    Broken("cadence", "recurring", """cadence = '{"cadence":"@every 0s"}'"""),
    Broken("cadence", "recurring", """cadence = '{"cadence":"@daily","timezone":"Mars/Base"}'"""),
    Broken("cadence", "recurring", """cadence = '{"cadence":"@daily","until":3}'"""),
    Broken("letters", "failed", "closed_at = died_at, closed_reason = 'retried'", "windlass_dead_letters"),
    Broken("letters", "saved", "closed_at = null, closed_reason = null", "windlass_dead_letters"),
    Broken("expiry", "running", "lease_expires_at = created_at"),
    Broken("times", "completed", "finished_at = created_at"),
    Broken("payload", "pending", "payload = '[1]'", "windlass_bodies"),
    Broken("payload", "pending", """payload = '{"a":1,"a":2}'""", "windlass_bodies"),
    Broken("payload", "pending", """metadata = '{"a":123456789012345678901234567890}'""", "windlass_bodies"),
    executions("tokens", "recurring", "token = 0", "number < 3"),
    executions("token_runs", "ticking", "token = (select token from windlass_jobs where id = job_id)"),
    executions("execution_status", "completed", "status = 'lost'"),
    executions("execution_reason", "completed", "reason = 'error'"),
    executions("execution_reason", "failed", "reason = null", "number = 1"),
    executions("execution_number", "completed", "wait_ms = -1"),
    executions("execution_number", "completed", "attempt = -1"),
    executions("execution_number", "completed", "attempt = number + 1"),
    executions("execution_times", "completed", "finished_at = (select created_at from windlass_jobs where id = job_id)"),
    letters("letter_acknowledged", "acknowledged", "acknowledged_by = null"),
    letters("letter_closed", "saved", "closed_reason = null"),
    letters("letter_closed", "saved", "closed_reason = 'bogus'"),
    letters("letter_closed", "failed", "closed_reason = 'retried'"),
    letters("letter_deaths", "failed", "deaths = 0"),
    letters(
        "letter_deaths", "failed", "died_at = (select created_at from windlass_jobs where id = windlass_dead_letters.job_id)"
    ),
]


async def test_a_store_with_a_varied_life_is_healthy(life: Life) -> None:
    states = {name: (await life.store.get(job_id)).state for name, job_id in life.ids.items()}
    assert set(states.values()) == set(JobState)
    assert await check(life.store) == await life.problems() == []


async def test_an_empty_store_is_healthy(store: Store) -> None:
    assert await check(store) == []


async def test_pages_join_without_a_gap(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PAGE", 2)
    monkeypatch.setattr(doctor, "_BODIES", 2)
    found = await life.problems(
        "update windlass_jobs set base_priority = priority + 1",
        "update windlass_bodies set payload = '[]'",
        "update windlass_executions set wait_ms = -1",
        "update windlass_dead_letters set deaths = 0",
    )
    for rule, table in (
        ("priority", "windlass_jobs"),
        ("payload", "windlass_bodies"),
        ("execution_number", "windlass_executions"),
        ("letter_deaths", "windlass_dead_letters"),
    ):
        [[rows]] = await execute(life.store, f"select count(*) from {table}")
        assert [problem.rule for problem in found].count(rule) == rows > 2


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.rule}-{broken.task}-{broken.change[:24]}")
async def test_a_broken_rule_is_reported_alone_with_its_job(life: Life, broken: Broken) -> None:
    job_id = life.ids[broken.task]
    assert await life.broken(broken.statement(job_id)) == {(broken.rule, job_id)}


@pytest.mark.parametrize("rule", sorted(HELD_BY_TABLES))
async def test_tables_refuse_a_row_that_breaks_a_rule(life: Life, rule: str) -> None:
    refused = [said for broken, said in life.refusals.items() if broken.rule == rule]
    assert refused
    # One change may break more than one rule, and any of them is named.
    assert all("windlass_jobs" in said for said in refused), refused
    assert any(f"windlass_jobs_{rule}" in said for said in refused) or len(refused) == 1, refused


@pytest.mark.parametrize(
    ("task", "column", "rule"),
    [
        ("pending", "run_at", "reachable"),
        ("scheduled", "run_at", "reachable"),
        ("template", "run_at", "reachable"),
        ("running", "lease_expires_at", "reachable"),
        ("stopping", "lease_expires_at", "reachable"),
        ("completed", "closed_at", "instants"),
        ("recurring", "slot_at", "instants"),
    ],
)
async def test_an_instant_that_never_comes_is_reported(life: Life, task: str, column: str, rule: str) -> None:
    never = "9223372036854775807" if isinstance(life.store.database, Sqlite) else "'infinity'"
    found = await life.broken(f"update windlass_jobs set {column} = {never} where id = {life.ids[task]}")
    assert found == {(rule, life.ids[task])}


@pytest.mark.parametrize(
    ("task", "change", "rule"),
    [
        ("pending", "lane = ''", "lane"),
        ("running", "lease_expires_at = null", "lease"),
        ("running", "token = null", "lease"),
        ("pending", "token = -1, worker = 'w', claimed_at = created_at, lease_expires_at = updated_at", "lease"),
        ("template", "cadence = 'bogus'", "cadence"),
    ],
)
async def test_a_job_that_not_exactly_one_query_finds_is_also_unreachable(life: Life, task: str, change: str, rule: str) -> None:
    found = await life.broken(f"update windlass_jobs set {change} where id = {life.ids[task]}")
    assert found == {(rule, life.ids[task]), ("reachable", life.ids[task])}


async def test_truth_values_of_sqlite_are_0_and_1(life: Life) -> None:
    if not isinstance(life.store.database, Sqlite):
        pytest.skip("PostgreSQL has a type for them")
    found = await life.broken(f"update windlass_jobs set held = 2 where id = {life.ids['pending']}")
    assert found == {("booleans", life.ids["pending"])}


@pytest.mark.parametrize(
    ("rule", "task", "table", "column"),
    [
        ("payload", "pending", "windlass_bodies", "payload"),
        ("payload", "pending", "windlass_bodies", "item_key"),
        ("execution_json", "completed", "windlass_executions", "result"),
        ("execution_json", "completed", "windlass_executions", "metadata"),
        ("letter_json", "failed", "windlass_dead_letters", "original_job"),
        ("letter_json", "failed", "windlass_dead_letters", "details"),
    ],
)
async def test_documents_of_sqlite_are_json(life: Life, *, rule: str, task: str, table: str, column: str) -> None:
    if not isinstance(life.store.database, Sqlite):
        pytest.skip("PostgreSQL has a type for them")
    found = await life.broken(f"""update {table} set {column} = '{{"a":NaN}}' where job_id = {life.ids[task]}""")
    assert found == {(rule, life.ids[task])}


async def test_a_gap_in_the_history_is_reported(life: Life) -> None:
    found = await life.broken(f"delete from windlass_executions where job_id = {life.ids['recurring']} and number = 2")
    assert found == {("executions", life.ids["recurring"])}


async def test_a_lost_newest_run_is_reported(life: Life) -> None:
    job_id = life.ids["completed"]
    found = await life.broken(f"delete from windlass_executions where job_id = {job_id}")
    assert found == {("executions", job_id), ("last_run", job_id)}


@pytest.mark.parametrize("task", ["pending", "running", "prefetched"])
async def test_a_run_beyond_the_last_number_is_reported(life: Life, task: str) -> None:
    found = await life.broken(_insert_runs(life.ids[task], 1, 1))
    assert found == {("executions", life.ids[task])}


async def test_only_retention_may_take_the_oldest_runs(life: Life) -> None:
    job_id = life.ids["pending"]
    history = (_insert_runs(job_id, 1, 103), f"update windlass_jobs set executions = 103 where id = {job_id}")
    pruned = f"delete from windlass_executions where job_id = {job_id} and number <= "
    assert await life.broken(*history, f"{pruned} 3") == set()
    assert await life.broken(*history, f"{pruned} 4") == {("executions", job_id)}
    assert await life.problems(*history, f"{pruned} 3", kept=Retention(keep_executions=101)) == [
        BrokenRule("executions", job_id, "runs 4..103 are kept as 100 rows: retention keeps the newest 101")
    ]


async def test_an_execution_of_no_job_is_reported(life: Life) -> None:
    found = await life.broken(_insert_runs(NOWHERE, 1, 1))
    assert found == {("execution_job", NOWHERE)}


async def test_a_job_without_its_body_is_reported(life: Life) -> None:
    found = await life.broken(f"delete from windlass_bodies where job_id = {life.ids['running']}")
    assert found == {("body", life.ids["running"])}


async def test_a_body_of_no_job_is_reported(life: Life) -> None:
    found = await life.broken(f"insert into windlass_bodies (job_id, payload) values ({NOWHERE}, '{{}}')")
    assert found == {("body_job", NOWHERE)}


async def test_two_jobs_of_a_task_with_one_slot_are_reported(life: Life) -> None:
    job_id = life.ids["rerun"]
    found = await life.broken(
        "drop index windlass_jobs_slots", f"update windlass_jobs set task = 'active_key' where id = {job_id}"
    )
    assert found == {("slot_clash", job_id)}


async def test_two_jobs_with_one_name_are_reported(life: Life) -> None:
    job_id = life.ids["template"]
    found = await life.broken(
        "drop index windlass_jobs_names", f"update windlass_jobs set name = 'every half hour' where id = {job_id}"
    )
    assert found == {("name_clash", job_id)}


async def test_a_failed_job_without_a_letter_is_reported(life: Life) -> None:
    found = await life.broken(f"delete from windlass_dead_letters where job_id = {life.ids['failed']}")
    assert found == {("letters", life.ids["failed"])}


async def test_a_failed_job_may_outlive_its_letter_by_the_time_letters_are_kept(life: Life) -> None:
    lost = f"delete from windlass_dead_letters where job_id = {life.ids['failed']}"
    later = Life(life.store, FakeClock(life.clock.now() + timedelta(days=91)))
    assert await later.broken(lost) == set()
    patient = Retention(keep_dead=timedelta(days=100))
    assert await later.broken(lost, kept=patient) == {("letters", life.ids["failed"])}


async def test_two_open_letters_of_a_job_are_reported(life: Life) -> None:
    found = await life.broken("drop index windlass_dead_letters_open", _insert_letter(life.ids["failed"]))
    assert found == {("one_letter", life.ids["failed"])}


async def test_an_open_letter_of_no_job_is_reported(life: Life) -> None:
    found = await life.broken(_insert_letter(NOWHERE))
    assert found == {("letter_job", NOWHERE)}


async def test_an_acknowledged_letter_may_outlive_its_job(life: Life) -> None:
    job_id = life.ids["acknowledged"]
    found = await life.broken(
        f"delete from windlass_jobs where id = {job_id}",
        f"delete from windlass_bodies where job_id = {job_id}",
        f"delete from windlass_executions where job_id = {job_id}",
    )
    assert found == set()


@pytest.mark.parametrize("task", ["pending", "never_seen"])
async def test_a_wrong_count_is_reported(life: Life, task: str) -> None:
    found = await life.broken(
        "insert into windlass_count_deltas (task, lane, state, wait_reason, jobs) "
        f"values ('{task}', 'default', 'pending', 'new', 1)"
    )
    assert found == {("counts", None)}


async def test_runs_that_nobody_counted_are_reported(life: Life) -> None:
    assert await life.broken("delete from windlass_run_deltas") == {("totals", None)}


TIMES = "insert into windlass_run_times (task, runs, wait_ms, duration_ms, wait_histogram, run_histogram) values "
MINUTE = (
    "insert into windlass_minutes (minute, task, lane, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, "
    "run_histogram) select run_at, {task}, 'default', 1, 0, 0, 0, 0, '{{}}', '{{}}' from windlass_jobs where id = 1"
)


async def test_times_of_runs_that_no_total_has_are_reported(life: Life) -> None:
    assert await life.broken(f"""{TIMES} ('never', 1, 0, 0, '{{"0":1}}', '{{"0":1}}')""") == {("run_times", None)}


async def test_histograms_that_are_not_of_all_runs_are_reported(life: Life) -> None:
    assert await life.broken(f"""{TIMES} ('never', 0, 0, 0, '{{"0":1}}', '{{}}')""") == {("run_histograms", None)}


async def test_runs_whose_times_are_lost_are_reported(life: Life) -> None:
    minutes = [MINUTE.format(task=task) for task in ("''", "'never'")]
    assert await life.broken(*minutes) == {("run_times", None)}


async def test_minutes_of_all_tasks_that_are_not_those_of_each_are_reported(life: Life) -> None:
    found = await life.broken(
        "insert into windlass_minutes (minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, "
        "run_histogram) select run_at, '', 1, 0, 0, 0, 0, '{}', '{}' from windlass_jobs limit 1"
    )
    assert found == {("minutes", None)}


async def test_a_lost_gate_is_reported(life: Life) -> None:
    found = await life.broken("delete from windlass_gates")
    assert found == {("gates", None)}


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("breaker_limits", "threshold = 0"),
        ("breaker_limits", "open_us = 0"),
        ("breaker_open", "probe_at = null"),
        ("breaker_open", "opened_at = null"),
        ("breaker_probe", "half_opened_at = updated_at"),
        ("breaker_probe", "probe_token = 5"),
    ],
)
async def test_a_breaker_that_contradicts_itself_is_reported(life: Life, rule: str, broken: str) -> None:
    await life.store.breakers.force_open("b", timedelta(minutes=1))
    assert await life.broken() == set()
    assert await life.broken(f"update windlass_breakers set is_forced = false, {broken}") == {(rule, None)}


async def test_a_breaker_that_its_history_does_not_know_is_reported(life: Life) -> None:
    await life.store.breakers.force_open("b")
    closed = "update windlass_breakers set state = 'closed'"
    assert await life.broken(closed) == {("breaker_forced", None), ("breaker_told", None)}


async def test_a_permit_without_a_token_is_reported(life: Life) -> None:
    await life.store.breakers.force_open("b")
    assert await life.broken("update windlass_breakers set probe_job_id = 5") == {("breaker_permit", 5)}


async def test_results_without_their_items_are_reported(life: Life) -> None:
    job_id = life.ids["pending"]
    assert await life.broken(f"update windlass_jobs set result_count = 2 where id = {job_id}") == {("items", job_id)}


async def test_a_key_that_outlives_its_job_is_reported(life: Life) -> None:
    found = await life.broken(
        "insert into windlass_idempotency (job_id, key, created_at) "
        f"select {NOWHERE}, key, created_at from (select created_at from windlass_jobs limit 1) as some_job "
        "cross join (select 'a' as key union all select 'b') as twice"
    )
    assert found == {("idempotency", NOWHERE)}


async def test_attempts_of_a_pulled_job_are_not_held_against_the_settings(life: Life) -> None:
    job_id = life.ids["unlimited"]
    strict = {**PROFILES, "pull": replace(PROFILES["pull"], max_attempts=1)}
    pulled = f"update windlass_jobs set retry = 'pull' where id = {job_id}"
    assert await life.broken(pulled, profiles=strict) == set()
    assert await life.broken(pulled, f"update windlass_jobs set max_attempts = 1 where id = {job_id}") == {("attempts", job_id)}


async def test_attempts_that_a_row_leaves_open_are_counted_by_its_profile(life: Life) -> None:
    strict = {**PROFILES, "task": replace(PROFILES["task"], max_attempts=1)}
    assert await life.broken(profiles=strict) == {("attempts", life.ids["unlimited"])}


async def test_a_failed_job_may_be_given_fewer_attempts_than_it_used(life: Life) -> None:
    assert (await life.store.get(life.ids["edited"])).attempt == 2
    assert await life.broken() == set()


def _insert_runs(job_id: int, first: int, last: int) -> str:
    return (
        "insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status) "
        f"with recursive numbers (n) as (select {first} union all select n + 1 from numbers where n < {last}) "
        f"select {job_id}, n, 1, -n, 'worker-1', created_at, created_at, 0, 'completed' "
        "from numbers cross join (select created_at from windlass_jobs limit 1) as some_job"
    )


def _insert_letter(job_id: int) -> str:
    return (
        "insert into windlass_dead_letters (job_id, task, lane, original_job, error, fingerprint, first_died_at, died_at) "
        f"select {job_id}, 'work', 'default', '{{}}', 'boom', 'f', created_at, created_at from windlass_jobs limit 1"
    )
