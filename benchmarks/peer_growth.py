"""What grows while a drain is measured: finished jobs in the tables, processes, lanes, payload, schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.peer_measures import Load
from benchmarks.peer_programs.program import About

# No more than so many bytes of payload in one drain.
_BYTES = 200_000_000


@dataclass(frozen=True)
class Growth:
    """One thing that grows."""

    title: str
    usual: tuple[int, ...]
    quick: tuple[int, ...]
    huge: tuple[int, ...]
    """Further sizes, only when asked for."""
    change: Callable[[Load, int], Load]
    fits: Callable[[About], bool] = lambda _: True

    def sizes(self, *, is_huge: bool, is_quick: bool) -> tuple[int, ...]:
        """List the sizes to measure."""
        return self.quick if is_quick else self.usual + (self.huge if is_huge else ())

    def load(self, load: Load, size: int) -> Load:
        """Return the load at a size."""
        return self.change(load, size)


def _with_payload(load: Load, size: int) -> Load:
    return replace(load, payload=size, jobs=max(300, min(load.jobs, _BYTES // size)))


AXES = (
    Growth(
        "finished jobs kept",
        (0, 1_000, 100_000, 1_000_000),
        (0, 10_000),
        (10_000_000,),
        lambda load, size: replace(load, finished=size),
        lambda about: bool(about.finished),
    ),
    Growth("processes", (1, 2, 4, 8), (1, 2), (), lambda load, size: replace(load, processes=size)),
    Growth(
        "lanes (queues, entrypoints)",
        (1, 10, 100, 1_000),
        (1, 10),
        (),
        lambda load, size: replace(load, lanes=size),
        lambda about: about.has_lanes,
    ),
    Growth("bytes of payload", (100, 1_000, 10_000, 100_000), (100, 10_000), (), _with_payload),
    Growth(
        "schedules waiting",
        (0, 1_000_000),
        (0, 10_000),
        (),
        lambda load, size: replace(load, waiting=size),
        lambda about: bool(about.waiting),
    ),
)
