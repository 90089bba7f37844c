"""The processes that run jobs, as the registry knows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_NAME
from windlass.core.payload import check_stored

PULLING = "pull"
"""The kind of workers that speak HTTP from anywhere."""
MAX_SEEN = 1000


class Process(NamedTuple):
    """A process that cannot be taken for another: where its number is counted, and when it started there."""

    place: str
    start: int


class Neighbour(NamedTuple):
    """A registered worker of one machine and the process it says it is."""

    id: str
    pid: int
    process_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A process that registers; `id` is the worker its leases name, `pools` and `tasks` are JSON text."""

    id: str
    host: str
    pid: int
    version: str
    kind: str = "worker"
    pools: str = "{}"
    tasks: str = "[]"
    process: Process | None = None
    """None where the system does not tell; then only leases say whether it lives."""

    def __post_init__(self) -> None:
        """Refuse what the registry could not keep."""
        for field in ("id", "host", "version", "kind"):
            check_text(field, getattr(self, field), MAX_NAME)
        check_range("pid", self.pid, 0, 2**31 - 1)
        check_stored(self.pools, field="pools")
        check_stored(self.tasks, field="tasks", kind=list)


class StartedJob(NamedTuple):
    """A job that a worker is running."""

    id: int
    task: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A registered process; `running` is what its last heartbeat said, `jobs` what its leases say."""

    id: str
    kind: str
    host: str
    pid: int
    version: str
    pools: str
    tasks: str
    running: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    is_online: bool
    """Neither stopped nor silent for too long, in database time."""
    loop_blocks: int = 0
    """How many times a handler was found to block its event loop."""
    jobs: tuple[StartedJob, ...] = ()
