"""Other work keeps its pace while many suspects wait at the head of the queue."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.worker import process_app
from tests.worker.rig import Rig
from windlass.core.job import JobState, Lease, NewJob
from windlass.worker.worker import Worker

TARGET = "tests.worker.process_app:app"
SUSPECTS = 1000
BATCH = 1000
ENOUGH = 0.8
ROUNDS = 5
WINDOW_S = 0.6
SETTLED_S = 0.2
AHEAD = 8_000
"""What a fast machine gets through in one window; a window ends early when there is no more."""
MOST_DELAY = 0.25
"""A window in which the event loop waited longer for a processor says more of the machine than of the worker."""


async def make_suspects(rig: Rig) -> None:
    """Put jobs at the head whose worker has died with them."""
    await rig.store.enqueue([NewJob(task="add", payload='{"a":1,"b":2}', priority=50) for _ in range(SUSPECTS)])
    lease = Lease(rig.rng.randrange(1, 2**62), "dead", timedelta(milliseconds=1))
    assert len(await rig.store.claim(await rig.store.slices(), SUSPECTS, lease, started=False)) == SUSPECTS

    async def are_back() -> bool:
        await rig.store.reclaim()
        await rig.store.promote()
        return await count_pending(rig, "add") == SUSPECTS

    await rig.until(are_back)


async def count_pending(rig: Rig, task: str) -> int:
    counts = await rig.store.count_jobs()
    return sum(count.jobs for count in counts if count.task == task and count.state is JobState.PENDING)


def delayed_s() -> float:
    """Read how long this thread could have run and had no processor."""
    schedstat = Path("/proc/thread-self/schedstat")
    return int(schedstat.read_text().split()[1]) / 1e9 if schedstat.exists() else 0.0


class Meter:
    """Measures the rate of a task in short windows, by turns with and without suspects."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._done: list[float] = []
        self.rates: dict[bool, list[float]] = {False: [], True: []}

        async def other() -> None:
            self._done.append(time.perf_counter())

        rig.task(other)

    async def measure(self, worker: Worker, *, has_suspects: bool) -> None:
        while await count_pending(self._rig, "other") < AHEAD:
            await self._rig.store.enqueue([NewJob(task="other") for _ in range(BATCH)])
        worker.wake()
        await asyncio.sleep(SETTLED_S)
        began, before, delay_s = time.perf_counter(), len(self._done), delayed_s()
        await asyncio.sleep(WINDOW_S)
        took_s = self._done[-1] - began
        if delayed_s() - delay_s <= MOST_DELAY * took_s:
            self.rates[has_suspects].append((len(self._done) - before) / took_s)

    @property
    def is_measured(self) -> bool:
        return all(len(rates) > 1 for rates in self.rates.values())

    @property
    def ratio(self) -> float:
        """Compare the best of each: what else the machine does slows windows down and never speeds them up."""
        return max(self.rates[True]) / max(self.rates[False])


async def test_a_thousand_suspects_leave_other_work_four_fifths_of_its_rate(rig: Rig) -> None:
    for spec in process_app.app.registry:
        rig.registry.add(spec)
    meter = Meter(rig)
    await make_suspects(rig)
    await rig.store.tasks.pause("add")
    worker = await rig.start(pools="*=5", target=TARGET)
    for _ in range(ROUNDS):
        await meter.measure(worker, has_suspects=False)
        await rig.store.tasks.resume("add")
        waiting = await count_pending(rig, "add")
        await meter.measure(worker, has_suspects=True)
        assert 0 < await count_pending(rig, "add") < waiting
        await rig.store.tasks.pause("add")
        if meter.is_measured and meter.ratio >= ENOUGH:
            break
    await rig.store.tasks.pause("other")
    if not meter.is_measured:
        pytest.skip("the machine was too busy to measure rates")
    assert meter.ratio >= ENOUGH
