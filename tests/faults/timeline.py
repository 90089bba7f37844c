"""What was done to the processes and to the database, and when."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from tests.faults.ledger import now_ns

FOREVER_NS = 2**63
# Less than this is a pause between the two looks.
_STEP_US = 100_000


class WallClock:
    """Which time of the ledger's clock the database's clock showed when: the machine's wall clock may be set meanwhile."""

    def __init__(self) -> None:
        self._offsets: list[tuple[int, int]] = []

    def look(self, wall_us: int | None = None, boot_us: int | None = None) -> None:
        """Note how far the two are apart, if that has changed."""
        boot_us = now_ns() // 1000 if boot_us is None else boot_us
        wall_us = time.time_ns() // 1000 if wall_us is None else wall_us
        offset_us = wall_us - boot_us
        if not self._offsets or abs(offset_us - self._offsets[-1][1]) > _STEP_US:
            self._offsets.append((wall_us, offset_us))

    @property
    def steps_s(self) -> list[float]:
        """By how much the wall clock was set, each time."""
        return [(later - before) / 1e6 for (_, before), (_, later) in pairwise(self._offsets)]

    def boot_ns(self, wall_us: int) -> int:
        """Translate an instant of the database."""
        offset_us = next((offset for since, offset in reversed(self._offsets) if since <= wall_us), self._offsets[0][1])
        return (wall_us - offset_us) * 1000


@dataclass
class Fault:
    """One fault, from its beginning to its end."""

    number: int
    kind: str
    target: str
    started_ns: int
    ended_ns: int | None = None
    pids: list[int] = field(default_factory=list)
    """The processes that may lose their leases by it; none where no lease may be lost."""
    is_outage: bool = False
    """Whether work is expected to stand still until it is over."""
    detail: str = ""
    jobs: list[int] = field(default_factory=list)
    """The jobs that nobody could take meanwhile, as a stranger held their rows."""

    def overlaps(self, from_ns: int, to_ns: int) -> bool:
        return self.started_ns <= to_ns and (self.ended_ns or FOREVER_NS) >= from_ns

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Death:
    """The end of a process."""

    pid: int
    role: str
    at_ns: int


class Deaths:
    """When processes ended; the system may give a number to several, one after the other."""

    def __init__(self, deaths: Iterable[Death]) -> None:
        self._at_ns: dict[int, list[int]] = defaultdict(list)
        for death in deaths:
            insort(self._at_ns[death.pid], death.at_ns)

    def after(self, pid: int, at_ns: int, default: int) -> int:
        """Return when the process ended that had this number at a time."""
        ends = self._at_ns.get(pid, [])
        place = bisect_left(ends, at_ns)
        return ends[place] if place < len(ends) else default


@dataclass(frozen=True)
class Stop:
    """When a process was told to stop in order."""

    pid: int
    at_ns: int


class Timeline:
    """Everything that happened, in order of its beginning."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.deaths: list[Death] = []
        self.stops: list[Stop] = []
        self.wall = WallClock()
        self.complaints: list[str] = []
        """What the processes did wrong while the run went on."""

    def begin(self, kind: str, target: str, *, pids: list[int] | None = None, is_outage: bool = False, detail: str = "") -> Fault:
        fault = Fault(len(self.faults) + 1, kind, target, now_ns(), None, pids or [], is_outage, detail)
        self.faults.append(fault)
        return fault

    def died(self, pid: int, role: str) -> None:
        self.deaths.append(Death(pid, role, now_ns()))

    def told_to_stop(self, pids: Iterable[int]) -> None:
        at_ns = now_ns()
        self.stops += [Stop(pid, at_ns) for pid in pids]
