"""Windlass: an application of one task, its producer, and `windlass worker` as users start it."""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

from program import ADDRESS, FILLER, LANES, VARIANT, About, Peer, lane_of, main, note

POOLS = "*=100"
IS_POSTGRES = VARIANT == "postgres"
# Set before the application reads its settings; the worker inherits it.
os.environ.setdefault("WINDLASS_DATABASE_URL", ADDRESS)

from windlass import Windlass  # noqa: E402 - see above
from windlass.core.cadence import Every, Recurrence  # noqa: E402 - see above

app = Windlass(name="peers")


@app.task(name="work")
async def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class WindlassPeer(Peer):
    """Windlass on either database, or worker and producer in one process."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._open = AsyncExitStack()

    async def prepare(self) -> None:
        """Migrate."""
        app.migrate()

    async def open(self) -> None:
        """Open the application, and a worker in this process where that is measured."""
        await self._open.enter_async_context(app)
        if VARIANT == "inside":
            await self._open.enter_async_context(app.working())

    async def close(self) -> None:
        """Close what was opened."""
        await self._open.aclose()

    async def enqueue(self, number: int) -> None:
        """Enqueue with an await for its commit."""
        await work.enqueue(number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue in one round trip."""
        if LANES == 1:
            await work.enqueue_many([{"number": number, "filler": FILLER} for number in numbers])
        else:
            await app.enqueue_jobs([work.using(lane=lane_of(number)).job(number=number, filler=FILLER) for number in numbers])

    def work(self) -> None:
        """Become `windlass worker`."""
        command = [sys.executable, "-m", "windlass", "worker", "windlass_program:app", "--pools", POOLS, "--log-level", "warning"]
        os.execv(sys.executable, command)


DAILY = Recurrence(cadence=Every(timedelta(days=1)), fixed_rate=True).encode()
FINISHED = {
    True: (
        """
        with doc as (
            insert into windlass_jobs (task, lane, state, run_at, created_at, updated_at, closed_at, attempt, executions)
            select 'work', 'default', 'completed', at, at, at, at, 1, 1
            from (select now() - ({rows} - n) * interval '5 ms' as at from generate_series(1, {rows}) as n) as past
            returning id, created_at
        ), bodies as (insert into windlass_bodies (job_id, payload) select id, '{{"number":7,"filler":"{filler}"}}' from doc)
        insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)
        select id, 1, 1, 1, 'w', created_at, created_at, 1, 'completed' from doc""",
    ),
    False: (
        """
        insert into windlass_jobs (task, lane, state, run_at, created_at, updated_at, closed_at, attempt, executions)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {rows}),
            past (at) as (select cast(unixepoch('subsec') * 1000000 as integer) - ({rows} - n) * 5000 from n)
        select 'work', 'default', 'completed', at, at, at, at, 1, 1 from past""",
        """insert into windlass_bodies (job_id, payload)
        select id, '{{"number":7,"filler":"{filler}"}}' from windlass_jobs where true""",
        """insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)
        select id, 1, 1, 1, 'w', created_at, created_at, 1, 'completed' from windlass_jobs""",
    ),
}
WAITING = {
    True: (
        f"""
        with doc as (
            insert into windlass_jobs (task, lane, state, wait_reason, run_at, slot_at, cadence, name, created_at, updated_at)
            select 'work', 'default', 'scheduled', 'recurrence', at, at, '{DAILY.replace("{", "{{").replace("}", "}}")}',
                'job-' || n, now(), now()
            from (
                select n, now() + interval '1 day' + n * interval '5 ms' as at from generate_series(1, {{rows}}) as n
            ) as planned
            returning id
        ) insert into windlass_bodies (job_id, payload) select id, '{{{{"number":7,"filler":"{{filler}}"}}}}' from doc""",
    ),
    False: (
        f"""
        insert into windlass_jobs (task, lane, state, wait_reason, run_at, slot_at, cadence, name, created_at, updated_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {{rows}}),
            planned (n, at) as (select n, cast(unixepoch('subsec') * 1000000 as integer) + 86400000000 + n * 5000 from n)
        select 'work', 'default', 'scheduled', 'recurrence', at, at, '{DAILY.replace("{", "{{").replace("}", "}}")}',
            'job-' || n, at - 86400000000, at - 86400000000 from planned""",
        """insert into windlass_bodies (job_id, payload)
        select id, '{{"number":7,"filler":"{filler}"}}' from windlass_jobs where true""",
    ),
}

if __name__ == "__main__":
    inside = "`app.working()` in the process that enqueues, default settings"
    main(
        WindlassPeer(),
        About(
            title={"postgres": "Windlass, PostgreSQL", "sqlite": "Windlass, SQLite"}.get(
                VARIANT, "Windlass, SQLite, one process"
            ),
            package="windlass",
            tuning=inside
            if VARIANT == "inside"
            else f'`windlass worker module:app --pools "{POOLS}"`, all other settings as they come, log level warning; '
            "`task.enqueue_many` and `task.enqueue`" + ("; psycopg, asyncio's own loop" if IS_POSTGRES else ""),
            history="default: job, payload and one row per run are kept for 30 days; counts, leases and fencing tokens are on",
            crash="at least once; a worker's crash gives its jobs back when their lease ends; every commit is synced"
            + ("" if IS_POSTGRES else " (WAL, `synchronous=full`)"),
            left="select (select count(*) from (select 1 from windlass_jobs where state = 'pending' limit 1) as waiting)"
            " + (select count(*) from (select 1 from windlass_jobs where token is not null limit 1) as held)",
            ended="select count(*) from windlass_jobs where state = 'completed'",
            finished=FINISHED[IS_POSTGRES],
            waiting=WAITING[IS_POSTGRES],
            has_lanes=True,
            is_inside=VARIANT == "inside",
            versions=("psycopg",) if IS_POSTGRES else (),
        ),
    )
