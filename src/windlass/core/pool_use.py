"""How many slots of the fleet's pools are busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from windlass.core.pool import EVERY_LANE
from windlass.core.worker import WorkerRecord


class PoolUse(NamedTuple):
    """The slots that all running workers have for one lane, or with `*` for every lane."""

    lane: str
    slots: int
    busy: int

    @property
    def use(self) -> float:
        """The busy part of the slots, from 0 to 1."""
        return self.busy / self.slots if self.slots else 0.0


def pool_use(workers: Iterable[WorkerRecord], busy: Mapping[tuple[str, str], int]) -> list[PoolUse]:
    """Add up the slots of live workers; `busy` counts the runs under way by worker and lane.

    A run belongs to the pool of its lane as far as that has slots, and then to `*`, which serves every lane.
    """
    slots: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for worker in workers:
        if worker.is_online:
            pools: dict[str, int] = worker.pools
            slots.update(pools)
            used.update(_used(pools, {lane: runs for (name, lane), runs in busy.items() if name == worker.id}))
    return [PoolUse(lane, slots[lane], used[lane]) for lane in sorted(slots)]


def _used(pools: Mapping[str, int], runs: Mapping[str, int]) -> dict[str, int]:
    own = {lane: min(number, pools[lane]) for lane, number in runs.items() if lane in pools}
    rest = sum(runs.values()) - sum(own.values())
    return own | ({EVERY_LANE: min(rest, pools[EVERY_LANE])} if EVERY_LANE in pools else {})
