"""Counts stay exact while many fold them."""

from __future__ import annotations

import asyncio

import pytest

from tests.store.builders import a_job, a_lease, ending
from tests.support.raw import execute
from windlass.core.job import Count, JobState, WaitReason
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock


async def test_many_folders_beside_writers_lose_nothing(stores: list[Store], clock: FakeClock) -> None:
    async def write(store: Store, task: str) -> None:
        for turn in range(15):
            await store.enqueue([a_job(f"{task}-{turn % 3}", lane=f"lane-{turn % 2}") for _ in range(4)])
            found = await store.slices()
            taken = await store.claim(found, 3, a_lease())
            await store.finish([ending(job, clock.now()) for job in taken])

    async def fold(store: Store) -> None:
        for _ in range(20):
            await store.fold_counts(limit=5)

    seen: list[int] = []

    async def read(store: Store) -> None:
        for _ in range(20):
            seen.extend([one.jobs for one in await store.count_jobs()])

    await asyncio.gather(
        *(write(store, f"task-{place}") for place, store in enumerate(stores[:3])),
        *(fold(store) for store in stores),
        read(stores[4]),
    )
    assert min(seen, default=1) > 0
    while await stores[0].fold_counts(limit=7):
        pass
    assert await execute(stores[0], "select count(*) from windlass_count_deltas") == [(0,)]
    assert sum(one.jobs for one in await stores[0].count_jobs()) == 3 * 15 * 4


async def test_folding_changes_no_count_and_ends(store: Store) -> None:
    for _ in range(10):
        await store.enqueue([a_job()])
    before = await store.count_jobs()
    folded = 0
    while part := await store.fold_counts(limit=3):
        assert part <= 3
        folded += part
    assert await store.count_jobs() == before == [Count("work", "default", JobState.PENDING, WaitReason.NEW, 10)]
    assert await store.fold_counts() == 0


async def test_a_fold_without_a_limit_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await store.fold_counts(limit=0)
