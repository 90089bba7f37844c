"""The processes that run jobs, as the registry knows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_NAME
from windlass.core.payload import check_stored, decode, decode_object
from windlass.core.record import record

PULLING = "pull"
"""The kind of workers that pull over HTTP."""
MAX_SEEN = 1000
MAX_VERSION = 100


class Process(NamedTuple):
    """A process that cannot be taken for another: where its number is counted, and when it started there."""

    place: str
    start: int


class Neighbour(NamedTuple):
    """A registered worker of one machine and the process it claims to be."""

    id: str
    pid: int
    process_start: int


class LeaseLook(NamedTuple):
    """Whether any leases are held, and the workers of one machine, at one moment."""

    at: datetime
    has_leases: bool
    neighbours: tuple[Neighbour, ...]


@record(kw_only=True)
class NewWorker:
    """A process that registers; `id` is the worker its leases name, `pools` and `tasks` are JSON text."""

    id: str
    host: str
    pid: int
    version: str
    kind: str = "worker"
    pools: str = "{}"
    tasks: str = "[]"
    app_version: str | None = None
    """The version of the application, beside that of Windlass."""
    process: Process | None = None
    """None where the system does not report it; then only leases show whether it lives."""

    def __post_init__(self) -> None:
        """Refuse what the registry could not keep."""
        for field in ("id", "host", "version", "kind"):
            check_text(field, getattr(self, field), MAX_NAME)
        if self.app_version is not None:
            check_text("app_version", self.app_version, MAX_VERSION)
        check_range("pid", self.pid, 0, 2**31 - 1)
        check_stored(self.pools, field="pools")
        check_stored(self.tasks, field="tasks", kind=list)


class SeenWorker(NamedTuple):
    """What a heartbeat is answered with."""

    is_paused: bool
    """Whether an operator wants it to claim nothing more."""


class StartedJob(NamedTuple):
    """A job that a worker is running."""

    id: int
    task: str
    started_at: datetime


class LongRun(NamedTuple):
    """A job that has been running for long."""

    id: int
    task: str
    worker: str
    started_at: datetime


@record
class WorkerRecord:
    """A registered process; `running` comes from its last heartbeat, `jobs` from its leases."""

    id: str
    kind: str
    host: str
    pid: int
    version: str
    pools_json: str
    tasks_json: str
    running: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    is_online: bool
    """Neither stopped nor without a heartbeat for too long, in database time."""
    loop_blocks: int = 0
    """How many times a handler was found to block its event loop."""
    app_version: str | None = None
    paused_at: datetime | None = None
    """Since when it is to claim nothing; what it has claimed is run to its end."""
    paused_by: str | None = None
    cpu_percent: int | None = None
    """What its process took of one core between its last two heartbeats; None before the first."""
    memory_mb: int | None = None
    """What its process held at its last heartbeat."""
    jobs: tuple[StartedJob, ...] = ()

    @property
    def pools(self) -> dict[str, Any]:
        """Its slots by lane."""
        return decode_object(self.pools_json, field="pools")

    @property
    def tasks(self) -> list[str]:
        """The tasks that it has code for."""
        value: list[str] = decode(self.tasks_json, field="tasks")
        return value
