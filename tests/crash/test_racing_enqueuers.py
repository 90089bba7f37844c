"""However many callers bring the same unique key at the same moment, one job comes of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.crash import enqueuer
from tests.crash.processes import Fleet
from tests.support.raw import execute
from windlass.store import SqlStore

PROCESSES = 10
CALLERS = 2
RIVALS = PROCESSES * CALLERS
ROUNDS = 25


@pytest.mark.parametrize("scope", ["active", "pending"])
async def test_twenty_racing_enqueuers_of_one_key_all_get_the_one_job(
    store: SqlStore, url: str, fleet: Fleet, backend: str, scope: str
) -> None:
    single = {"scope": scope, "callers": CALLERS, "rounds": ROUNDS}
    bulk = single | {"scope": scope, "keys": 12, "private": 8}
    for case in (single, bulk):
        answers = await race(fleet, [enqueuer.Options(url, f"{len(case)}-{place}", **case) for place in range(PROCESSES)])
        await check_answers(store, answers, enqueuer.Options(url, "any", **case))
    if backend == "postgres":
        assert await execute(store, "select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


async def race(fleet: Fleet, options: list[enqueuer.Options]) -> list[Any]:
    """Let all rivals begin at the same instant; returns each caller's answers, round by round."""
    rivals = [fleet.start(f"enqueuer {place}", enqueuer, one) for place, one in enumerate(options)]
    await fleet.go(*rivals)
    for rival in rivals:
        rival.tell(str(time.time() + 0.5))
    answers = [caller for rival in rivals for caller in (await rival.hear("answers"))[0]]
    assert [await rival.end() for rival in rivals] == [0] * len(rivals)
    return answers


async def check_answers(store: SqlStore, answers: list[Any], options: enqueuer.Options) -> None:
    assert len(answers) == RIVALS
    ids: set[int] = set()
    for turn in range(ROUNDS):
        for key in enqueuer.shared_keys(options, turn):
            given = [caller[turn][key] for caller in answers]
            assert len({job_id for job_id, _ in given}) == 1, f"key {key} led to several jobs: {given}"
            assert [is_duplicate for _, is_duplicate in given].count(False) == 1, f"key {key} was not new exactly once: {given}"
            ids.add(given[0][0])
        own = [job_id for caller in answers for key, (job_id, _) in caller[turn].items() if not key.startswith(options.scope)]
        assert len(own) == len(set(own)) == RIVALS * options.private
    found = await execute(
        store, f"select id from windlass_jobs where unique_key like '{options.scope}-%' order by id desc limit {len(ids)}"
    )
    assert {row[0] for row in found} == ids
    [[keys, jobs]] = await execute(store, "select count(distinct unique_key), count(*) from windlass_jobs")
    assert keys == jobs
