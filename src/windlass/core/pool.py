"""Pools: the slots of a worker and the lanes they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_NAME, Slice
from windlass.core.record import record
from windlass.errors import InvalidInput

EVERY_LANE = "*"
PULL_LANE = "pull"
FAST_LANE = "fast"
DEFAULT_POOLS = "fast=3,*=5"
MAX_SLOTS = 1000
_FORM = f"must name each pool once with its slots, as in {DEFAULT_POOLS}"


@record
class PoolSpec:
    """A worker's slots for one lane, or with `*` for every lane but `pull`."""

    lane: str
    slots: int
    left_out: frozenset[str] = frozenset()
    """Lanes that `*` leaves to others."""

    def __post_init__(self) -> None:
        """Refuse a pool that could run nothing."""
        check_text("lane", self.lane, MAX_NAME)
        check_range("slots", self.slots, 1, MAX_SLOTS)

    def serves(self, lane: str) -> bool:
        """Whether jobs of this lane may run here."""
        return lane != PULL_LANE and lane not in self.left_out if self.lane == EVERY_LANE else lane == self.lane

    def may_take(self, part: Slice, tasks: frozenset[str]) -> bool:
        """Whether this pool may claim from a slice: a job of a task without code here is left to others."""
        return part.task in tasks and self.serves(part.lane)


def separate(pools: Sequence[PoolSpec], lane: str) -> PoolSpec:
    """Return the pool of one lane as it runs in a process of its own: `*` leaves out the lanes that have their own pools."""
    pool = next((pool for pool in pools if pool.lane == lane), None)
    if pool is None:
        raise InvalidInput("pool", lane, f"must be one of {', '.join(pool.lane for pool in pools)}")
    return replace(pool, left_out=frozenset(other.lane for other in pools) - {lane}) if lane == EVERY_LANE else pool


def parse_pools(value: str | Mapping[str, object]) -> tuple[PoolSpec, ...]:
    """Read `fast=3,*=5` or a mapping; raises InvalidInput where a pool could run nothing."""
    pairs = list(value.items()) if isinstance(value, Mapping) else _pairs(value)
    pools = {lane: PoolSpec(lane, _slots(value, slots)) for lane, slots in pairs}
    if not pools or len(pools) < len(pairs):
        raise InvalidInput("pools", value, _FORM)
    return tuple(pools.values())


def _pairs(text: object) -> list[tuple[str, object]]:
    if not isinstance(text, str):
        raise InvalidInput("pools", text, _FORM)
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    return [(lane.strip(), slots.strip()) for lane, _, slots in parts]


def _slots(pools: object, slots: object) -> int:
    number = int(slots) if isinstance(slots, str) and slots.isascii() and slots.isdigit() else slots
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput("pools", pools, _FORM)
    return number
