"""What was done to the processes and to the database, and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.faults.ledger import now_ns

FOREVER_NS = 2**63


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
