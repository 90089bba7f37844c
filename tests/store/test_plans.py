"""The planner serves the hot queries from their indexes, however large the table and however little it knows of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.store.builders import a_job, a_lease
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.core.cadence import EPOCH
from windlass.core.outcome import Completed, Returned, Run, decide
from windlass.store import Store, open_store
from windlass.store.queries import PARAMETER, queries
from windlass.store.sqlite_library import sqlite_driver as driver

FILL = """
with doc as (
    insert into windlass_jobs (task, lane, state, wait_reason, run_at, created_at, updated_at, closed_at, token, worker,
        claimed_at, lease_expires_at, attempt, executions)
    select 'task-' || n % 20, 'lane-' || n % 3, state,
        case when state in ('pending', 'scheduled') then 'new' end, now() + n * interval '1 second' * sign(n % 4 - 2),
        now(), now(), case when state = 'completed' then now() - n % 60 * interval '1 day' end,
        case when state = 'running' then n end, case when state = 'running' then 'w' end,
        case when state = 'running' then now() end, case when state = 'running' then now() end, 1, 1
    from (
        select n, (array['completed', 'completed', 'completed', 'pending', 'scheduled',
            case when n % 500 = 5 then 'running' else 'completed' end])[n % 6 + 1] as state
        from generate_series(1, {rows}) as n
    ) as numbered
    returning id
)
insert into windlass_bodies (job_id, payload) select id, '{{}}' from doc
"""
HISTORY = """
insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)
select id, 1, 1, id, 'w', now(), now(), 0, 'completed' from windlass_jobs where state = 'completed'
"""

SIZES = {"50 k analysed": (50_000, True), "20 k never analysed": (20_000, False), "nearly empty": (30, False)}
PARAMS: dict[str, Any] = {
    "version": 1,
    **{f"priority_{arm}": 2**31 - 1 for arm in range(4)},
    **{f"run_at_{arm}": EPOCH for arm in range(4)},
    "limit": 100,
    "token": 1,
    "worker": "w",
    "lease": timedelta(seconds=20),
    "started": False,
    "only_gone": False,
    "now": None,
    "expired_before": None,
    "any_death": False,
    "any_recurring": False,
    "after": 0,
    "state": None,
    "task": None,
    "name": "breaker-1",
    "after_name": "",
    "avoid": 1,
    "id": 7,
    "key": "k",
    "pull_id": "p",
    "seen": 1,
    "added": 1,
    "cursor": None,
    "message": None,
    "until": 10_000,
    "states": '["pending"]',
    "reasons": "[]",
    "tasks": None,
    "lanes": None,
    "subject": None,
    "correlation_id": None,
    "parent_id": None,
    "search": None,
    "since": None,
    "is_template": None,
    "is_recurring": None,
    "amount": 5,
    "error": "e",
    "error_type": "E",
    "fingerprints": "{" + ",".join(f'"task-{place}":"f"' for place in range(20)) + "}",
    "ids": "[" + ",".join(map(str, range(1, 600, 3))) + "]",
    "lane": "lane-1",
    "most": 99,
    "keep": 100,
    "keep_for": timedelta(days=30),
    "after_at": EPOCH,
    "runs": '[{"id":1,"first":1,"last":100},{"id":2,"first":1,"last":100}]',
    "slices": '[{"task":"task-1","lane":"lane-1","state":"completed"},{"task":"task-4","lane":"lane-1","state":"pending"}]',
    "share": 51,
    "depth": 51,
    "offset": 0,
    "sort": "created_at",
    "sign": -1,
    "first_key": -(2**63),
    "second_key": -(2**63),
    "third_key": -(2**63),
    "above": 0,
    "below": 2**63 - 1,
    "edge_at": datetime(2026, 1, 1, tzinfo=UTC),
    "edge_id": 0,
    "edge_priority": 2**31,
    "own": 1,
    "missed_after": timedelta(seconds=60),
    "older_than": timedelta(hours=1),
    "priority": 0,
    "groups": '["a","b","c"]',
}
_MANY = "{" + ",".join(map(str, range(1, 200))) + "}"
# The others leave the state and the task open.
OWN_PARAMS: dict[str, dict[str, Any]] = {
    "claim_probe": {"task": "task-0", "lane": "lane-0"},
    "claim_suspect_probe": {"task": "task-0", "lane": "lane-0"},
    "override": {"state": "completed"},
    "old_jobs": {"state": "completed"},
    "aging_jobs": {"lane": "lane-0", "task": "task-3"},
    # Without one the planner knows that nothing can match.
    "list_correlation": {"correlation_id": "c"},
    "unfinished_children": {"parent_id": 1},
    "count_before": {"lane": "lane-0", "tasks": '["task-3", "task-9"]', "edge_at": datetime(2100, 1, 1, tzinfo=UTC)},
    "count_suspects_before": {"lane": "lane-0", "tasks": '["task-3", "task-9"]'},
    "complete": dict.fromkeys(("id", "token", "started_us", "finished_us"), _MANY) | {"cpu_time_ms": None, "result": None},
    "completed_runs": {"id": _MANY, "token": _MANY},
}
# Tasks behind breakers of every kind: the job that tries one is looked up by its number.
GATES = """
insert into windlass_tasks (name, lane, breaker, first_seen_at, seen_at)
select 'task-' || n, 'l', 'breaker-' || n % 4, now(), now() from generate_series(0, 19) as n;
insert into windlass_breakers (name, state, threshold, open_us, probe_at, half_opened_at, probe_job_id, probe_token, updated_at)
select 'breaker-' || n, (array['closed', 'half_open', 'open', 'half_open'])[n + 1], 5, 60000000, now(), now(), n * 7, n, now()
from generate_series(0, 3) as n
"""
INDEXES = {
    "claim": {"windlass_jobs_pending"},
    "claim_suspect": {"windlass_jobs_suspects"},
    "claim_any": {"windlass_jobs_pending"},
    "slices": {"windlass_jobs_pending"},
    "promote": {"windlass_jobs_scheduled", "windlass_jobs_watched", "windlass_jobs_pending", "windlass_jobs_leased"},
    "lock_missed": {"windlass_jobs_watched"},
    "unfinished_children": {"windlass_jobs_unfinished"},
    "finish": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "complete": {"windlass_jobs_pkey"},
    "renew": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "lapsed": {"windlass_jobs_leased"},
    "locked_jobs": {"windlass_jobs_pkey"},
    "vouch": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "reclaim": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "record_logs": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "list_all_newest": {"windlass_jobs_pkey"},
    "list_all_oldest": {"windlass_jobs_pkey"},
    "list_gathered_newest": {"windlass_jobs_listed"},
    "list_gathered_oldest": {"windlass_jobs_listed"},
    "list_slices_newest": {"windlass_jobs_listed"},
    "list_slices_oldest": {"windlass_jobs_listed"},
    "list_waiting_newest": {"windlass_jobs_pending"},
    "list_closed_newest": {"windlass_jobs_closed_at"},
    "list_due_oldest": {"windlass_jobs_scheduled"},
    "list_subject_newest": {"windlass_jobs_subjects"},
    "list_correlation_newest": {"windlass_jobs_correlations"},
    "list_own_newest": {"windlass_jobs_correlations", "windlass_jobs_parents", "windlass_jobs_pkey"},
    "list_parent_newest": {"windlass_jobs_parents"},
    "list_recurring_newest": {"windlass_jobs_recurring"},
    "id_floor": {"windlass_jobs_pkey"},
    "list_correlation": {"windlass_jobs_correlations"},
    "oldest_pending": {"windlass_jobs_pending"},
    "get_jobs": {"windlass_jobs_pkey"},
    "list_newest_runs": {"windlass_jobs_pkey"},
    "list_newest_children": {"windlass_jobs_parents"},
    "claim_probe": {"windlass_jobs_pending"},
    "claim_suspect_probe": {"windlass_jobs_suspects"},
    "pending_priorities": {"windlass_jobs_pending"},
    "get_breaker": {"windlass_jobs_pkey"},
    "report_case": {"windlass_jobs_pkey"},
    "add_progress": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "find_pull": {"windlass_jobs_pulls"},
    "repull": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "mark_pull": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "pick_oldest": {"windlass_jobs_pending"},
    "pick_newest": {"windlass_jobs_pending"},
    "claim_picked": {"windlass_jobs_pkey"},
    "last_turns": {"windlass_jobs_turns"},
    "page_ids": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    # That of leases has the numbers too, and only the running jobs, if a worker is asked for.
    "matching_ids": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "leased": {"windlass_jobs_pkey", "windlass_jobs_leased"},
    "override": {"windlass_jobs_pkey"},
    "bury": {"windlass_jobs_pkey"},
    "boost": {"windlass_jobs_pkey"},
    "pending_slices": {"windlass_jobs_pending"},
    "aging_jobs": {"windlass_jobs_pending"},
    "age": {"windlass_jobs_pkey"},
    "list_started": {"windlass_jobs_leased"},
    "busy_slots": {"windlass_jobs_leased"},
    "newest_slices": {"windlass_jobs_pkey"},
    "retried_slices": {"windlass_jobs_histories"},
    "payload_sizes": {"windlass_jobs_pkey"},
    "late_schedules": {"windlass_jobs_scheduled", "windlass_jobs_templates", "windlass_jobs_recurring"},
    "doctor_overdue": {"windlass_jobs_scheduled", "windlass_jobs_leased"},
    "leases_by_lane": {"windlass_jobs_leased"},
    "count_before": {"windlass_jobs_pending"},
    "count_suspects_before": {"windlass_jobs_suspects"},
    "long_histories": {"windlass_jobs_histories"},
    "long_runs": {"windlass_jobs_leased"},
    "recurring_runs": {"windlass_jobs_recurring"},
    "next_fires": {"windlass_jobs_recurring"},
    "old_jobs": {"windlass_jobs_closed_at"},
    "lock_old_jobs": {"windlass_jobs_pkey"},
    "prune_jobs": {"windlass_jobs_pkey"},
}
# Only on SQLite: their tables are not filled for PostgreSQL here.
ALSO_BY_INDEX = [
    *("cancel", "insert_items", "list_items", "list_job_items", "count_items", "report_past", "stale_sources"),
    "list_collections",
    *("completed_runs", "count_leased", "prune_executions", "prune_parts", "prune_letters"),
    *("ended_runs", "newest_letter", "alike_letters"),
    *("list_reminders", "due_reminders", "mark_reminders", "prune_reminders"),
    *("list_subscribed_feeds", "count_subscribed_feeds"),
    *("page_letters_alike", "count_letters", "has_kind"),
    *("cleared_alerts", "move_alert", "prune_alerts", "first_mark", "prune_marks", "recent_deaths"),
]
ARMS = 4


@pytest.fixture(scope="module", params=SIZES)
def database(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[tuple[psycopg.Connection[Any], int]]:
    rows, is_analysed = SIZES[request.param]
    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table windlass_jobs set (autovacuum_enabled = off)")
        connection.execute(FILL.format(rows=rows))
        connection.execute(GATES)
        connection.execute(HISTORY)
        if is_analysed:
            connection.execute("analyze")
        yield connection, rows


@pytest.mark.parametrize("name", INDEXES)
def test_postgres_reads_no_more_than_it_must(database: tuple[psycopg.Connection[Any], int], name: str) -> None:
    connection, rows = database
    plan = _plan(connection, name)
    scans = re.findall(r"Seq Scan on (windlass_jobs|windlass_executions|windlass_bodies)", plan)
    if rows > 1000:
        assert scans == [], plan
        assert set(re.findall(r"windlass_jobs_\w+", plan)) & INDEXES[name], plan
    assert "JIT" not in plan, plan


def test_a_claim_locks_through_a_tid_scan_above_the_merge(database: tuple[psycopg.Connection[Any], int]) -> None:
    connection, rows = database
    plan = _plan(connection, "claim")
    assert "Tid Scan" in plan, plan
    if rows > 1000:
        assert "Merge Append" in plan, plan


CLAIMED_BEFORE = """
insert into windlass_jobs (task, lane, state, wait_reason, run_at, created_at, updated_at)
select 'work', 'default', 'pending', 'new', now() - interval '1 hour' + n * interval '1 ms', now(), now()
from generate_series(1, {rows}) as n;
update windlass_jobs set state = 'completed', wait_reason = null, closed_at = now();
insert into windlass_jobs (task, lane, state, wait_reason, run_at, created_at, updated_at)
select 'work', 'default', 'pending', 'new', now(), now(), now() from generate_series(1, 5)
"""


def test_a_claim_reads_nothing_that_was_claimed_before(postgres_server: PostgresServer) -> None:
    """The index keeps the entries of claimed jobs until a vacuum: a claim from the front would go through all of them."""

    def pages_read(*, priority: int, run_at: datetime) -> int:
        head = {"lane_0": "default", "task_0": "work", "priority_0": priority, "run_at_0": run_at}
        [statement] = queries("postgres").statements("claim", 1)
        text = PARAMETER.sub(r"%(\1)s", statement)
        with connection.transaction(force_rollback=True):
            explained = f"explain (analyze, buffers, format json) {text}"
            [[plan]] = connection.execute(explained, {**PARAMS, "limit": 5, **head}).fetchall()
        found = plan[0]["Plan"]
        assert '"Actual Rows": 5' in json.dumps(plan), plan
        return int(found["Shared Hit Blocks"] + found["Shared Read Blocks"])

    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table windlass_jobs set (autovacuum_enabled = off)")
        for statement in CLAIMED_BEFORE.format(rows=20_000).split(";\n"):
            connection.execute(statement.encode())
        connection.execute("analyze windlass_jobs")
        [[version]] = connection.execute("select version from windlass_gates").fetchall()
        assert version == PARAMS["version"]
        [[run_at]] = connection.execute("select min(run_at) from windlass_jobs where state = 'pending'").fetchall()
        # Read once before each, as the first scan marks the entries that are dead.
        pages_read(priority=0, run_at=EPOCH)
        assert pages_read(priority=0, run_at=run_at) < 100
        assert pages_read(priority=0, run_at=EPOCH) > 150


@pytest.mark.parametrize("name", ["pick_oldest", "pick_newest"])
def test_picking_sorts_no_queue(database: tuple[psycopg.Connection[Any], int], name: str) -> None:
    """Each slice is read in the order of its index and no further than what is chosen from."""
    connection, rows = database
    plan = _plan(connection, name)
    if rows > 1000:
        assert "Merge Append" in plan, plan
        assert "Sort Method" not in plan, plan
        assert max(int(found) for found in re.findall(r"actual rows=(\d+)", plan)) <= 100, plan


def test_postgres_counts_leases_by_index(database: tuple[psycopg.Connection[Any], int]) -> None:
    connection, rows = database
    # Before the first analyze it takes nearly every row for a leased one; a drain is rare enough to bear it.
    if rows >= 50_000:
        assert "windlass_jobs_leased" in _plan(connection, "count_leased")


@pytest.mark.parametrize("name", ["prune_executions", "prune_parts", "completed_runs"])
def test_postgres_finds_runs_by_key(database: tuple[psycopg.Connection[Any], int], name: str) -> None:
    connection, rows = database
    plan = _plan(connection, name)
    if rows > 1000:
        assert "Seq Scan on windlass_executions" not in plan, plan
        assert "windlass_executions_pkey" in plan, plan


FEEDS = """
insert into windlass_feeds (url, created_at, updated_at)
select 'https://e/' || n, now(), now() from generate_series(1, 10000) as n;
insert into windlass_subscriptions (feed_id, subscriber, created_at)
select id, 'reader-' || id % 1000, now() from windlass_feeds union all select id, 'eager', now() from windlass_feeds
"""


def test_feeds_of_a_subscriber_are_read_by_their_index(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table windlass_feeds set (autovacuum_enabled = off)")
        connection.execute("alter table windlass_subscriptions set (autovacuum_enabled = off)")
        connection.execute(FEEDS)
        for step, mode in product(("select 1", "analyze"), ("force_custom_plan", "force_generic_plan")):
            connection.execute(step)
            connection.execute(f"set plan_cache_mode = {mode}")
            for name in ("list_subscribed_feeds", "count_subscribed_feeds"):
                few, many = (_prepared_plan(connection, name, subscriber) for subscriber in ("reader-7", "eager"))
                assert "windlass_subscriptions_subscriber" in few, few
                for plan in (few, many):
                    assert "Seq Scan on windlass_feeds" not in plan, plan
                    assert max(map(int, re.findall(r"(?:actual rows=|Removed by Filter: )(\d+)", plan))) <= 300, plan


def _prepared_plan(connection: psycopg.Connection[Any], name: str, subscriber: str) -> str:
    [statement] = queries("postgres").statements(name, ARMS)
    values = {"subscriber": f"'{subscriber}'", "after": "0", "limit": "100", "most": "100"}
    used = list(dict.fromkeys(PARAMETER.findall(statement)))
    text = PARAMETER.sub(lambda found: f"${used.index(found[1]) + 1}", statement)
    connection.execute(f"prepare feeds as {text}")
    said = ", ".join(values[one] for one in used)
    found = connection.execute(f"explain (analyze, costs off, timing off) execute feeds ({said})").fetchall()
    connection.execute("deallocate feeds")
    return "\n".join(line for (line,) in found)


def _plan(connection: psycopg.Connection[Any], name: str) -> str:
    [statement] = queries("postgres").statements(name, ARMS)
    own = OWN_PARAMS.get(name, {})
    params = {one: own[one] if one in own else _value(one) for one in PARAMETER.findall(statement)}
    text = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
    with connection.transaction(force_rollback=True):
        found = connection.execute(f"explain (analyze, costs off, timing off) {text}", params).fetchall()
    return "\n".join(line for (line,) in found)


def _value(name: str) -> Any:
    if name.startswith("lane_"):
        return f"lane-{int(name[5:]) % 3}"
    if name.startswith("state_"):
        return ("completed", "failed", "cancelled", "paused")[int(name[6:])]
    if name.startswith("task_"):
        return f"task-{name[5:]}"
    if name == "batch":
        return (
            '[{"state":"completed","attempt":1,"executions":1,"crashes":0,"consecutive_failures":0,"completed_runs":1,'
            '"status":"completed","rows":[' + ",".join(f'{{"id":{n},"token":{n}}}' for n in range(1, 200)) + "]}]"
        )
    if name in {"leases", "logs"}:
        return "[" + ",".join(f'{{"id":{n},"token":{n},"log_excerpt":""}}' for n in range(1, 200)) + "]"
    return PARAMS[name]


@pytest.mark.parametrize("name", [*INDEXES, *ALSO_BY_INDEX])
def test_sqlite_searches_by_index(tmp_path: Path, name: str) -> None:
    path = tmp_path / "plan.db"
    migrate_sqlite(path)
    connection = driver.connect(str(path))
    for statement in queries("sqlite").statements(name, ARMS):
        params = dict.fromkeys(PARAMETER.findall(statement), 1) | dict.fromkeys(_DOCUMENTS, "[]")
        lines = [row[3] for row in connection.execute(f"explain query plan {statement}", params)]
        made = {line.split()[-1] for line in lines if line.startswith(("CO-ROUTINE", "MATERIALIZE"))}
        lines = [line for line in lines if not (line.startswith("SCAN") and line.split()[1] in made)]
        walks = [line for line in lines if re.match(r"SCAN (windlass_\w+|f|j|k|n|o|x)( |$)", line)]
        allowed = ("USING INDEX", "USING COVERING INDEX", "windlass_gates", "gates")
        assert [line for line in walks if not any(word in line for word in allowed)] == [], lines
    connection.close()


@pytest.mark.parametrize("name", ["complete", "finish", "renew", "find_holders"])
def test_sqlite_looks_each_job_of_a_batch_up_when_it_was_analysed_while_nothing_ran(tmp_path: Path, name: str) -> None:
    """The indexes of what is leased and of what holds a key were empty then, and are believed to be."""
    path = tmp_path / "analysed.db"
    migrate_sqlite(path)
    connection = driver.connect(str(path), isolation_level=None)
    connection.execute(
        "with recursive n (id) as (select 1 union all select id + 1 from n where id < 5000) "
        "insert into windlass_jobs (id, task, lane, state, wait_reason, run_at, created_at, updated_at) "
        "select id, 't', 'l', 'pending', 'new', 1, 1, 1 from n"
    )
    connection.execute("analyze")
    connection.close()
    # What has been found is read when a file is opened.
    connection = driver.connect(str(path))
    for statement in queries("sqlite").statements(name, 200):
        params = dict.fromkeys(PARAMETER.findall(statement), 1) | dict.fromkeys(_DOCUMENTS, "[]")
        lines = [row[3] for row in connection.execute(f"explain query plan {statement}", params)]
        assert [line for line in lines if re.match(r"SCAN j( |$)", line)] == [], lines
    connection.close()


async def test_plans_made_on_empty_tables_never_read_one_as_a_whole(postgres_server: PostgresServer) -> None:
    """The server keeps a plan when the table has grown; a worker that is started first would crawl through the first burst."""
    with fresh_postgres(postgres_server) as dsn:
        store = open_store(dsn, rng=Random(1))
        for _ in range(12):
            await store.enqueue([a_job()])
            jobs = await store.claim(await store.slices(), 10, a_lease())
            now = jobs[0].claimed_at
            await store.renew([(job.id, job.token, now) for job in jobs], timedelta(seconds=20))
            await store.finish([decide(job, Returned(), Run(now, now), now=now, rng=Random(1)) for job in jobs])
            await store.enqueue([a_job(), a_job()])
            first, second = await store.claim(await store.slices(), 10, a_lease())
            await store.finish([Completed(first.id, first.token, first, 0, 1)])
            # Sent again beside another one: which of the two has ended is looked up.
            await store.finish([Completed(job.id, job.token, job, 0, 1) for job in (first, second)])
            await store.promote()
        await store.aclose()
        # The server counts when a connection has ended.
        while not (scans := _scans(dsn))["windlass_jobs"].by_index:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        assert [name for name, seen in scans.items() if seen.whole] == []


class _Scans(NamedTuple):
    whole: int
    by_index: int


def _scans(dsn: str) -> dict[str, _Scans]:
    tables = ["windlass_jobs", "windlass_bodies", "windlass_executions", "windlass_dead_letters"]
    query = "select relname, seq_scan, coalesce(idx_scan, 0) from pg_stat_user_tables where relname = any(%s)"
    with psycopg.connect(dsn, autocommit=True) as connection:
        return {name: _Scans(whole, by_index) for name, whole, by_index in connection.execute(query, [tables]).fetchall()}


LETTERS = """
insert into windlass_dead_letters (
    job_id, task, lane, original_job, error, fingerprint, first_died_at, died_at, closed_at, closed_reason
)
select n, 'task', 'lane', '{{}}', 'boom', case when n > {rows} - 100 then 'fresh' else 'kind-' || n % 50 end,
    now() - ({rows} - n) * interval '1 minute', now() - ({rows} - n) * interval '1 minute',
    case when n % 10 > 0 then now() end, case when n % 10 > 0 then 'requeued' end
from generate_series(1, {rows}) as n
"""


@pytest.mark.parametrize("is_analysed", [False, True])
def test_letters_are_grouped_counted_and_paged_by_their_indexes(postgres_server: PostgresServer, is_analysed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    windows = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
    chosen = {"fingerprint": "fresh", "after": 0, "until": 2**40, "task": None, "is_open": True, "is_new": True, "limit": 50} | {
        "depth": 5001
    }
    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table windlass_dead_letters set (autovacuum_enabled = off)")
        connection.execute(LETTERS.format(rows=60_000))
        if is_analysed:
            connection.execute("analyze")
        for name, index, most in (
            ("page_letters_alike", "groups", 100),
            ("has_kind", "groups|windlass_dead_letters_kinds", 1),
            ("count_letters", "died", 5001),
            ("group_letters", "groups", 5001),
            ("group_open_letters", "groups", 6000),
        ):
            [statement] = queries("postgres").statements(name, ARMS)
            params = {one: (windows | chosen | {"now": None})[one] for one in PARAMETER.findall(statement)}
            text = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
            plan = "\n".join(row[0] for row in connection.execute(f"explain (analyze, costs off, timing off) {text}", params))
            assert "Seq Scan on windlass_dead_letters" not in plan, plan
            assert re.search(f"windlass_dead_letters_{index}", plan), plan
            assert max(map(int, re.findall(r"(?:actual rows=|Removed by Filter: )(\d+)", plan))) <= most, plan


_DOCUMENTS = ("ids", "ids_found", "batch", "leases", "items", "runs", "groups", "tasks")


async def test_four_rivals_get_few_empty_claims(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        stores = [open_store(dsn, rng=Random(seed)) for seed in range(4)]
        await stores[0].enqueue([a_job(f"task-{place % 5}") for place in range(8000)])
        found = await stores[0].slices()
        empty = taken = 0

        async def drain(store: Store) -> None:
            nonlocal empty, taken
            while taken < 8000:
                # At the end there may be nothing left but what the others are just taking.
                has_enough = taken <= 8000 - 4 * 100
                got = await store.claim(found, 100, a_lease(), started=False)
                taken += len(got)
                empty += has_enough and not got

        await asyncio.gather(*(drain(store) for store in stores))
        for store in stores:
            await store.aclose()
    assert taken == 8000
    assert empty <= 12
