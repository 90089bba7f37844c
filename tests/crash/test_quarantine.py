"""A job that kills its worker dies alone: what ran or waited beside it completes."""

from __future__ import annotations

import pytest

from tests.crash.processes import until
from tests.crash.test_real_worker import Site, enqueue, site
from windlass.core.job import CLOSED, JobState, RunReason
from windlass.store import Store

__all__ = ["site"]

STARTED = 50
AHEAD = 500


@pytest.mark.parametrize("way", ["async", "thread"])
async def test_a_killer_among_started_and_prefetched_jobs_is_the_only_dead_letter(site: Site, store: Store, way: str) -> None:
    names = ("work", "patient", "late_poison") if way == "async" else ("work_in_thread", "patient_in_thread", "poison_in_thread")
    work, patient, poison = names
    started = await enqueue(store, patient, STARTED, lane="slow")
    [killer] = await enqueue(store, poison, lane="slow")
    # Supervised: a process that dies is replaced.
    site.start("--pools", f"slow={STARTED + 1},*=2")
    await until(lambda: site.count("start") == STARTED + 1, "the killer and its neighbours to run")
    ahead = await enqueue(store, work, AHEAD)
    await until(lambda: site.count("end") > AHEAD // 10, "short jobs to be held ready")
    site.mark("kill")
    await until(lambda: len({pid for _, pid in site.lines("start")}) > 1, "another process to take over")
    site.mark("release")

    async def all_closed() -> bool:
        return all(count.state in CLOSED for count in await store.count_jobs())

    await until(all_closed, "every job to end", within=120)
    assert [letter.job_id for letter in (await store.letters.list()).letters] == [killer]
    assert {(await store.get(job_id)).state for job_id in started + ahead} == {JobState.COMPLETED}
    reasons = [run.reason for run in await store.list_executions(killer)]
    # The first death took the whole process along; after it, only the child that the suspect ran in.
    assert reasons[0] is RunReason.WORKER_CRASHED
    assert len(reasons) == 3
