"""Pools: the slots of a worker and the lanes they serve."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_NAME, Slice
from windlass.errors import InvalidInput

EVERY_LANE = "*"
PULL_LANE = "pull"
FAST_LANE = "fast"
DEFAULT_POOLS = "fast=3,*=5"
MAX_SLOTS = 1000


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A worker's slots for one lane, or with `*` for every lane but `pull`."""

    lane: str
    slots: int

    def __post_init__(self) -> None:
        """Refuse a pool that could run nothing."""
        check_text("lane", self.lane, MAX_NAME)
        check_range("slots", self.slots, 1, MAX_SLOTS)

    def serves(self, lane: str) -> bool:
        """Whether jobs of this lane may run here."""
        return lane != PULL_LANE if self.lane == EVERY_LANE else lane == self.lane

    def may_take(self, part: Slice, tasks: frozenset[str]) -> bool:
        """Whether this pool may claim from a slice: a job of a task without code here is left to others."""
        return part.task in tasks and self.serves(part.lane)


def parse_pools(text: str) -> tuple[PoolSpec, ...]:
    """Read `fast=3,*=5`."""
    pools: dict[str, PoolSpec] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        lane, equals, slots = (piece.strip() for piece in part.partition("="))
        if not equals or not slots.isascii() or not slots.isdigit() or lane in pools:
            raise InvalidInput("pools", text, f"{part!r} is not lane=slots, each lane once, as in {DEFAULT_POOLS!r}")
        pools[lane] = PoolSpec(lane, int(slots))
    if not pools:
        raise InvalidInput("pools", text, f"names no pool; write for example {DEFAULT_POOLS!r}")
    return tuple(pools.values())
