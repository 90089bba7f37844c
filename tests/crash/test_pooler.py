"""Told not to prepare, the store leaves nothing behind on a connection, so a transaction pooler may stand between."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest

from tests.crash import drainer
from tests.crash.processes import Fleet, until
from tests.crash.worker import Running, new_lease
from tests.support.postgres_server import USER, Account, PostgresServer, private_folder, url_of
from tests.support.stores import fresh_url
from windlass.core.cadence import Every, Recurrence
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.ids import job_uuid
from windlass.core.job import Edit, JobState, NewJob, Slices
from windlass.core.outcome import Returned, Run, decide
from windlass.core.page import JobQuery
from windlass.core.pull import PickOrder, Pull
from windlass.core.report import Report
from windlass.store import Store, open_store
from windlass.store.doctor import check
from windlass.store.postgres import Postgres

# What outlives a transaction, and so would be met by another client of the pooler, or missed by ours.
SESSION_STATE = re.compile(
    # A setting that is gone with its transaction is none of the session's.
    r"^set (?!local\b)|set_config\((?!'\w+', '\w+', true\))|^listen\b|^prepare\b|^load\b|\bpg_(try_)?advisory_(?!xact)"
    r"|\btemp(orary)? table\b|\bwith hold\b"
)
SENT = re.compile(r"LOG:  (?:execute (?P<name>\S+)|statement): (?P<text>.*(?:\n\t.*)*)")
JOBS = 500


class Verbs:
    """Calls a store's verbs by name and remembers which."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.used: set[str] = set()

    async def __call__(self, verb: str, *args: Any, **named: Any) -> Any:
        self.used.add(verb)
        return await getattr(self.store, verb)(*args, **named)

    @property
    def unused(self) -> set[str]:
        every = {name for name, value in vars(Store).items() if inspect.iscoroutinefunction(value)}
        # Every verb is used through `run`.
        return {name for name in every if not name.startswith("_")} - {"aclose", "run"} - self.used


async def test_no_verb_leaves_anything_on_its_connection(own_server: PostgresServer, tmp_path: Path) -> None:
    with fresh_url("postgres", tmp_path, own_server) as url:
        log_everything(url)
        store = open_store(f"{url}&prepare=off", rng=Random(1))
        verbs = Verbs(store)
        # Twice: a driver prepares what it sees again.
        for turn in range(2):
            await use_every_verb(verbs, url, turn)
        assert verbs.unused == set(), "a new verb needs its line in use_every_verb"
        kept = await kept_by(store)
        await store.aclose()
        sent = list(SENT.finditer(log_of(own_server)))
    assert len(sent) > 2 * len(verbs.used), "the server's log does not hold what was sent"
    assert {match["name"] for match in sent} <= {None, "<unnamed>"}
    assert [match["text"] for match in sent if SESSION_STATE.search(match["text"].lower())] == []
    assert kept, "no connection was looked at"
    assert set(kept) == {(0, 0, 0, 0)}


async def test_every_verb_and_two_processes_work_through_pgbouncer(
    own_server: PostgresServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = find_pgbouncer(request)
    fleet = Fleet(tmp_path)
    try:
        with fresh_url("postgres", tmp_path, own_server) as direct:
            async with running_pgbouncer(program, direct) as pooled:
                store = open_store(f"{pooled}&prepare=off", rng=Random(1))
                for turn in range(2):
                    await use_every_verb(Verbs(store), pooled, turn)
                await drain(store, f"{pooled}&prepare=off", fleet)
                assert await check(store) == []
                await store.aclose()
    finally:
        fleet.close()


async def drain(store: Store, url: str, fleet: Fleet) -> None:
    """Let several processes, each with several connections, share the few that the pooler has."""
    ids = [enqueued.id for enqueued in await store.enqueue([NewJob(task="drain")] * JOBS)]
    drainers = [fleet.start(f"drainer {place}", drainer, drainer.Options(url, f"d{place}", 20)) for place in range(4)]
    await fleet.go(*drainers)
    ran = [job_id for process in drainers for job_id in (await process.hear("ran"))[0]]
    assert sorted(ran) == ids
    assert [await process.end() for process in drainers] == [0] * len(drainers)


async def use_every_verb(use: Verbs, url: str, turn: int) -> None:
    """Call each verb at least once, with an effect where that is easy."""
    recurring = Recurrence(cadence=Every(timedelta(hours=1)))
    jobs = [
        NewJob(task="work", lane="verbs", unique_key=f"key {turn}"),
        NewJob(task="work", lane="verbs", unique_key=f"key {turn}"),
        NewJob(task="work", lane="verbs", recurrence=recurring, delay=timedelta()),
        NewJob(task="tick", lane="verbs", recurrence=recurring, spawn=True, delay=timedelta()),
        NewJob(task="later", lane="verbs", delay=timedelta(hours=1)),
    ]
    one, same, repeated, _, later = [enqueued.id for enqueued in await use("enqueue", jobs)]
    assert one == same
    async with await psycopg.AsyncConnection.connect(url, prepare_threshold=None) as connection:
        await use("enqueue_on", connection, [NewJob(task="work", lane="verbs")])
    await use("spawn")
    await use("promote")
    claimed = [Running(job) for job in await use("claim", await use("slices"), 100, new_lease("w", 60), started=True)]
    assert {one, repeated} <= {running.job.id for running in claimed}
    now = await use("clock")
    await use("renew", [running.lease for running in claimed], timedelta(seconds=60))
    await use("progress", one, claimed[0].job.token, count=1)
    await use("record_logs", [(one, claimed[0].job.token, "half of it is done")])
    await use("stop_run", [repeated])
    [held] = [running.job for running in claimed if running.job.id == one]
    await use("cancel", [one])
    await use("stop", [(one, held.token, Run(now))])
    endings = [decide(running.job, Returned(), Run(now, now), now=now, rng=Random(1)) for running in claimed]
    assert len(await use("finish", endings)) == len(claimed) - 1
    for verb in ("disable", "enable", "pause", "resume", "run_now", "retry"):
        await use(verb, [later])
    await use("edit", later, Edit(priority=7))
    assert (await use("get", later)).priority == 7
    await use("lapsed")
    await use("reclaim")
    assert (await use("list_jobs", only(JobState.CANCELLED))).jobs
    await use("list_executions", one)
    await use("explain", one)
    await use("trace", str(job_uuid(one)))
    await use("trace_jobs", [one])
    await use("read_past", [one], [repeated], limit=3)
    await use("prune_logs")
    await use("count_executions", one)
    await use("list_by_correlation", "c")
    await use("list_tree", one)
    await use("get_execution", one, 1)
    await use("list_dead_letters", one)
    await use("count_jobs")
    await use("fold_counts")
    await use_pull_verbs(use, turn)
    await use_operator_verbs(use, later)
    # Nothing claimable stays behind for the processes that come after.
    await use("cancel", [job.id for job in (await use("list_jobs", only(JobState.PENDING))).jobs])


async def use_pull_verbs(use: Verbs, turn: int) -> None:
    """Pull a job, report on it and end it."""
    await use("enqueue", [NewJob(task="leads", lane="pull")])
    found = await use("slices")
    mine = Slices(found.version, tuple(part for part in found.open if part.lane == "pull"))
    pulled = await use("pull", mine, new_lease("p", 60), f"pull {turn}")
    assert (await use("heartbeat", pulled.id, pulled.token)).id == pulled.id
    told = Report(job_id=pulled.id, worker="p", token=pulled.token, items=[{"phone": "1"}], is_done=True, key="k")
    assert (await use("report", told)).is_done
    assert (await use("job_status", pulled.id)).state is JobState.COMPLETED
    assert await use("claim_probe", found, "nobody's", new_lease("p", 60)) is None
    assert await use("claim_suspects", found, 1, new_lease("p", 60)) == []
    await use("enqueue", [NewJob(task="leads", lane="pull")])
    [taken] = await use("pull_each", [Pull(("pull",), new_lease("p", 60))], PickOrder.FAIR)
    assert await use("give_back", taken)


async def use_operator_verbs(use: Verbs, waiting: int) -> None:
    """Move a job through what operators can do to it."""
    await use("boost", [waiting], 1)
    await use("set_priority", [waiting], 7)
    await use("age")
    await use("age_some")
    await use("count_task", "work")
    await use("get_many", [waiting])
    await use("enqueue_and_get", [NewJob(task="later", lane="verbs", delay=timedelta(hours=1))])
    await use("check_schema")
    (await use("bury", [waiting], "for the test")).one()
    [copy] = (await use("clone", [waiting])).changed
    (await use("fail", [copy.id], "for the test", will_retry=False)).one()
    (await use("override_status", [copy.id], JobState.RUNNING, by="ann", lease_length=timedelta(minutes=1))).one()
    (await use("take_lease", [copy.id])).one()
    await use("cancel", [copy.id])
    (await use("delete", [copy.id])).one()
    assert (await use("bulk", "boost", JobFilter(tasks=("nobody",)), {"amount": 1})).matched == 0
    await use("bulk_part", "boost", JobFilter(tasks=("nobody",)), {"amount": 1})


def only(state: JobState) -> JobQuery:
    """Ask for the jobs of one state."""
    return JobQuery(filter=JobFilter(states=(StateFilter(state),)))


async def kept_by(store: Store) -> list[tuple[int, ...]]:
    """Count what each connection of the store's pool has kept: prepared statements, settings, locks and tables of its own."""
    assert isinstance(store.database, Postgres)
    found: list[tuple[int, ...]] = []
    pools = store.database._pools
    spare = [pool._spare._kept for pool in (pools._engine, pools._others)]
    for connection in filter(None, [*pools._engine._pool._pool, *pools._others._pool._pool, *spare]):
        cursor = await connection.execute(
            """select (select count(*) from pg_prepared_statements),
            (select count(*) from pg_settings where source = 'session'),
            (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
            (select count(*) from pg_class where relpersistence = 't' and pg_table_is_visible(oid))"""
        )
        found += await cursor.fetchall()
    return found


def log_everything(url: str) -> None:
    """Let the server write down every statement sent to this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter database {connection.info.dbname} set log_statement = 'all'")


def log_of(server: PostgresServer) -> str:
    folder = unquote(parse_qs(urlsplit(server.dsn).query)["host"][0])
    return (Path(folder) / "log").read_text()


def find_pgbouncer(request: pytest.FixtureRequest) -> str:
    """Find the program, or say for all to see that nothing was tested."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        message = "NOT TESTED through a real transaction pooler: pgbouncer is not installed (apt-get install pgbouncer)"
        if terminal := request.config.pluginmanager.getplugin("terminalreporter"):
            terminal.write_line(f"\n{message}", red=True, bold=True)
        pytest.skip(message)
    return found


@asynccontextmanager
async def running_pgbouncer(program: str, url: str, *, mode: str = "transaction") -> AsyncIterator[str]:
    """Run pgbouncer before a database, with fewer connections than there are clients."""
    parts = urlsplit(url)
    host, database = unquote(parse_qs(parts.query)["host"][0]), parts.path.removeprefix("/")
    account = Account.choose()
    with private_folder(account) as folder:
        (folder / "users.txt").write_text(f'"{USER}" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n{database} = host={host} dbname={database} user={USER}\n[pgbouncer]\npool_mode = {mode}\n"
            f"default_pool_size = 2\nlisten_addr =\nunix_socket_dir = {folder}\nlisten_port = 6432\n"
            f"auth_type = trust\nauth_file = {folder / 'users.txt'}\nlogfile = {folder / 'log.txt'}\n"
        )
        account.own(folder)
        dropped: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.is_other else {}
        command = [program, "-q", str(folder / "pgbouncer.ini")]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **dropped
        )
        pooled = url_of({"host": str(folder), "port": 6432, "user": USER, "dbname": database})
        try:
            await until(lambda: accepts(pooled), "pgbouncer to take connections")
            yield pooled
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 10)


async def accepts(url: str) -> bool:
    try:
        async with await psycopg.AsyncConnection.connect(url):
            return True
    except psycopg.OperationalError:
        return False
