"""What a comparison has found."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.peer_measures import Drained
from benchmarks.peer_programs.program import About


@dataclass
class Figures:
    """The measurements of one peer, of every round."""

    about: About
    jobs: int = 0
    drained: dict[int, list[Drained]] = field(default_factory=dict)
    """By the number of processes."""
    single: list[float] = field(default_factory=list)
    pickup: list[float] = field(default_factory=list)
    """Milliseconds, of all rounds."""
    failures: dict[str, str] = field(default_factory=dict)

    def drain_rate(self, processes: int) -> float | None:
        """Return the median rate of a drain."""
        return _median([one.rate for one in self.drained.get(processes, [])])

    def bulk_rate(self) -> float | None:
        """Return the median rate of bulk enqueues, which every drain begins with."""
        return _median([one.bulk_rate for some in self.drained.values() for one in some])

    def single_rate(self) -> float | None:
        """Return the median rate of enqueues one after another."""
        return _median(self.single)

    def pickup_ms(self, percent: int) -> float | None:
        """Return a percentile of the waits until a job begins."""
        return statistics.quantiles(self.pickup, n=100)[percent - 1] if len(self.pickup) > 1 else None

    def worker_us(self) -> float | None:
        """Return the workers' processor time for each job, with one process."""
        return _median([one.worker_us for one in self.drained.get(1, [])])

    def server_us(self) -> float | None:
        """Return the server's processor time for each job, with one process."""
        return _median([one.server_us for one in self.drained.get(1, []) if one.server_us is not None])

    def peak_mib(self) -> float | None:
        """Return the most memory that one worker held."""
        return max((one.peak_mib for one in self.drained.get(1, [])), default=None)

    def repeats(self) -> int:
        """Return how many runs there were beyond one for each job."""
        return sum(one.repeats for some in self.drained.values() for one in some)


@dataclass
class Comparison:
    """Everything that a run has found."""

    rounds: int
    is_reduced: bool
    figures: dict[str, Figures] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    """Peers that could not be had, with the reason."""
    grown: dict[tuple[str, int], dict[str, list[float]]] = field(default_factory=dict)
    """Rates by what has grown to which size, and by peer."""
    grown_failures: dict[tuple[str, int, str], str] = field(default_factory=dict)
    storages: dict[str, str] = field(default_factory=dict)

    def grown_rate(self, title: str, size: int, name: str) -> float | None:
        """Return the median rate at one size."""
        return _median(self.grown.get((title, size), {}).get(name, []))


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None
