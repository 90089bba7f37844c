"""Other work keeps its pace while many suspects wait at the head of the queue."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from tests.worker import process_app
from tests.worker.rig import Rig
from windlass.core.job import JobState, Lease, NewJob
from windlass.worker.worker import Worker

TARGET = "tests.worker.process_app:app"
SUSPECTS = 3000
"""More than a thousand, so that a fast machine does not get through them all in its rounds."""
BATCH = 1000
ENOUGH = 0.8
ROUNDS = 6
WARM = 12
WINDOW_S = 0.6
SETTLED_S = 0.2
AHEAD = 8_000
"""What a fast machine gets through in one window; a window ends early when there is no more."""


async def make_suspects(rig: Rig) -> None:
    """Put jobs at the head whose worker has died with them."""
    await rig.store.enqueue([NewJob(task="add", payload='{"a":1,"b":2}', priority=50) for _ in range(SUSPECTS)])
    claimed = 0
    while claimed < SUSPECTS:
        lease = Lease(rig.rng.randrange(1, 2**62), "dead", timedelta(milliseconds=1))
        claimed += len(await rig.store.claim(await rig.store.slices(), min(BATCH, SUSPECTS - claimed), lease, started=False))

    async def are_back() -> bool:
        await rig.store.reclaim()
        await rig.store.promote()
        return await count_pending(rig, "add") == SUSPECTS

    await rig.until(are_back)


async def count_pending(rig: Rig, task: str) -> int:
    counts = await rig.store.count_jobs()
    return sum(count.jobs for count in counts if count.task == task and count.state is JobState.PENDING)


class Meter:
    """Measures the rate of a task in short windows."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._done: list[float] = []

        async def other() -> None:
            self._done.append(time.perf_counter())

        rig.task(other)

    async def measure(self, worker: Worker) -> float:
        while await count_pending(self._rig, "other") < AHEAD:
            await self._rig.store.enqueue([NewJob(task="other") for _ in range(BATCH)])
        worker.wake()
        await asyncio.sleep(SETTLED_S)
        began, before = time.perf_counter(), len(self._done)
        await asyncio.sleep(WINDOW_S)
        return (len(self._done) - before) / (self._done[-1] - began)


async def test_thousands_of_suspects_leave_other_work_four_fifths_of_its_rate(rig: Rig) -> None:
    for spec in process_app.app.registry:
        rig.registry.add(spec)
    meter = Meter(rig)
    await make_suspects(rig)
    worker = await rig.start(pools="*=5", target=TARGET)

    async def are_warm() -> bool:
        return await count_pending(rig, "add") < SUSPECTS - WARM

    # The children that suspects run in are started once.
    await rig.until(are_warm)
    await rig.store.tasks.pause("add")
    without = await meter.measure(worker)
    ratios: list[float] = []
    # The best of a few rounds, each between two without suspects: what else the machine does makes single windows slow.
    while len(ratios) < ROUNDS and max(ratios, default=0.0) < ENOUGH:
        await rig.store.tasks.resume("add")
        waiting = await count_pending(rig, "add")
        beside = await meter.measure(worker)
        assert 0 < await count_pending(rig, "add") < waiting
        await rig.store.tasks.pause("add")
        before, without = without, await meter.measure(worker)
        ratios.append(beside / ((before + without) / 2))
    await rig.store.tasks.pause("other")
    assert max(ratios) >= ENOUGH, ratios
