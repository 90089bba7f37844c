"""However many callers bring the same unique key at the same moment, one job comes of it."""

from __future__ import annotations

import time

import pytest

from tests.crash import enqueuer
from tests.crash.processes import Fleet
from tests.support.raw import execute
from windlass.store import Store

PROCESSES = 10
CALLERS = 2
RIVALS = PROCESSES * CALLERS
SINGLES = [[f"single {turn}"] for turn in range(25)]
BULKS = [[f"bulk {turn} {number}" for number in range(12)] for turn in range(25)]
OWN = [0] * len(SINGLES) + [8] * len(BULKS)

Answers = list[dict[str, tuple[int, bool]]]
"""What one caller was given, round by round: the job of each key, and whether it was there before."""


@pytest.mark.parametrize("scope", ["active", "pending"])
async def test_twenty_racing_enqueuers_of_one_key_all_get_the_one_job(
    store: Store, url: str, fleet: Fleet, *, backend: str, scope: str
) -> None:
    rounds = SINGLES + BULKS
    answers = await race(
        fleet, [enqueuer.Options(url, f"own {place}", scope, CALLERS, rounds, OWN) for place in range(PROCESSES)]
    )
    assert len(answers) == RIVALS
    for turn, keys in enumerate(rounds):
        for key in keys:
            given = [caller[turn][key] for caller in answers]
            assert len({job_id for job_id, _ in given}) == 1, f"key {key!r} led to several jobs: {given}"
            assert [is_duplicate for _, is_duplicate in given].count(False) == 1, f"key {key!r} was not new exactly once: {given}"
    ids = {job_id for caller in answers for turn in caller for job_id, _ in turn.values()}
    assert len(ids) == sum(map(len, rounds)) + RIVALS * sum(OWN)
    assert {row[0] for row in await execute(store, "select id from windlass_jobs")} == ids
    if backend == "postgres":
        assert await execute(store, "select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


async def race(fleet: Fleet, options: list[enqueuer.Options]) -> list[Answers]:
    """Let all rivals begin at the same instant; returns what each caller was given."""
    rivals = [fleet.start(f"enqueuer {place}", enqueuer, one) for place, one in enumerate(options)]
    await fleet.go(*rivals)
    begin_s = time.time() + 0.3
    for rival in rivals:
        rival.tell(str(begin_s))
    answers = [caller for rival in rivals for caller in (await rival.hear("answers"))[0]]
    assert [await rival.end() for rival in rivals] == [0] * len(rivals)
    return answers
