"""Fixed-rate jobs on workers that are killed at random: no slot completes twice, none is missed."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash.conftest import is_long
from tests.crash.processes import until
from tests.crash.test_real_worker import Site
from tests.support.raw import execute
from windlass.core.cadence import MISSED_AFTER, Every, Recurrence
from windlass.core.job import NewJob
from windlass.store import Store
from windlass.store.batches import microseconds


class Campaign(NamedTuple):
    """How hard it is made."""

    processes: int
    jobs: int
    seconds: float
    kill_every: float


SHORT = {"sqlite-file": Campaign(3, 60, 8, 1.0), "postgres": Campaign(4, 100, 8, 1.0)}
LONG = {"sqlite-file": Campaign(4, 500, 60, 2.0), "postgres": Campaign(10, 2000, 60, 4.0)}
OPTIONS = ("--alone", "--pools", "*=5")


@pytest.fixture
def site(url: str, store: Store, tmp_path: Path) -> Iterator[Site]:
    del store
    made = Site(url, tmp_path)
    yield made
    made.close()


async def plan(store: Store, count: int) -> dict[int, timedelta]:
    """Enqueue jobs every 1 to 5 seconds, out of step with one another; gives each one's period."""
    rng = random.Random(11)
    now = await store.clock()
    periods = [timedelta(seconds=1 + place % 5) for place in range(count)]
    jobs = [
        NewJob(
            task="tick",
            recurrence=Recurrence(cadence=Every(period), fixed_rate=True),
            run_at=now + timedelta(seconds=3) + period * rng.random(),
            # A job may be hit again and again here, and is not to die of it.
            max_attempts=1000,
        )
        for period in periods
    ]
    made = []
    for start in range(0, count, 500):
        made += await store.enqueue(jobs[start : start + 500])
    return {one.id: period for one, period in zip(made, periods, strict=True)}


async def harass(site: Site, campaign: Campaign) -> int:
    """Keep so many workers running, and kill one of them now and then; gives how many died."""
    rng = random.Random(3)
    workers = [site.start(*OPTIONS) for _ in range(campaign.processes)]
    give_up = time.monotonic() + campaign.seconds
    killed = 0
    while time.monotonic() < give_up:
        await asyncio.sleep(rng.uniform(0.5, 1.5) * campaign.kill_every)
        victim = rng.randrange(len(workers))
        workers[victim].kill()
        await site.end(workers[victim])
        killed += 1
        workers[victim] = site.start(*OPTIONS)
    return killed


class Ended(NamedTuple):
    """A run."""

    status: str
    reason: str | None
    at: int


Runs = dict[int, dict[int, list[Ended]]]
MISSED_US = microseconds(MISSED_AFTER)


async def runs_by_slot(store: Store) -> Runs:
    """Read every run, by job and planned time; all times in microseconds."""
    found: Runs = defaultdict(lambda: defaultdict(list))
    query = "select job_id, slot_at, status, reason, finished_at from windlass_executions order by job_id, number"
    for job_id, slot_at, status, reason, finished_at in await execute(store, query):
        found[job_id][_us(slot_at)].append(Ended(status, reason, _us(finished_at)))
    return found


def missed(slots: dict[int, list[Ended]], next_slot: int, step: int) -> list[int]:
    """Give the slots that were left out although the run before them ended in time for them."""
    left_out = []
    for slot, following in pairwise(sorted({*slots, next_slot})):
        if following != slot + step and slots[slot][-1].at - (slot + step) <= MISSED_US:
            left_out.append(slot + step)
    return left_out


def _us(instant: Any) -> int:
    return instant if isinstance(instant, int) else microseconds(instant)


async def test_no_slot_completes_twice_and_none_is_missed(
    site: Site, store: Store, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = (LONG if is_long() else SHORT)[backend]
    periods = await plan(store, campaign.jobs)
    killed = await harass(site, campaign)
    over_at = await store.clock()

    async def caught_up() -> bool:
        query = "select count(*) from windlass_jobs where slot_at <= "
        at = microseconds(over_at) if backend != "postgres" else f"timestamptz '{over_at.isoformat()}'"
        [[behind]] = await execute(store, f"{query}{at}")
        return bool(behind == 0)

    await until(caught_up, "every slot of the campaign to be over", within=120)
    await stop_all(site)
    found = await runs_by_slot(store)
    next_slots = {job_id: _us(slot) for job_id, slot in await execute(store, "select id, slot_at from windlass_jobs")}
    assert found.keys() == periods.keys() == next_slots.keys()
    reasons: Counter[str | None] = Counter()
    skipped = 0
    for job_id, slots in found.items():
        for slot, runs in slots.items():
            # The last one completed, and each before it says why it did not; the end may have cut short what came after.
            assert runs[-1].status == "completed" or slot > microseconds(over_at), (job_id, slot, runs)
            assert all(run.status != "completed" and run.reason is not None for run in runs[:-1]), (job_id, slot, runs)
            reasons.update(run.reason for run in runs)
        step = microseconds(periods[job_id])
        assert missed(slots, next_slots[job_id], step) == [], f"job {job_id} missed slots"
        assert {(slot - min(slots)) % step for slot in slots} == {0}, f"job {job_id} drifted"
        skipped += (max(slots) - min(slots)) // step + 1 - len(slots)
    with capsys.disabled():
        print(f"\n{backend}: {campaign}, {killed} kills, {reasons.total()} runs, {skipped} skipped: {dict(reasons)}")


async def stop_all(site: Site) -> None:
    living: list[subprocess.Popen[bytes]] = [process for process in site._running if process.poll() is None]
    for process in living:
        process.send_signal(signal.SIGTERM)
    for process in living:
        # One that was told before it had begun to work had nothing to end in order.
        assert await site.end(process) in {0, -signal.SIGTERM}
