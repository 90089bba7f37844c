"""One run while it goes on."""

from __future__ import annotations

from asyncio import Task
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from windlass.core.current import CurrentJob
from windlass.core.durations import in_words
from windlass.core.job import Claimed, RunReason
from windlass.core.outcome import Failure, Outcome, Raised, Released, Run, Stopped
from windlass.core.payload import encode_object
from windlass.core.task import TaskSpec
from windlass.errors import InvalidPayload
from windlass.worker.context import Again, JobContext
from windlass.worker.link import StoreLink
from windlass.worker.logs import LogExcerpt
from windlass.worker.wire import ChildEnd


class Why(Enum):
    """Why a run is to end before its handler comes back."""

    TIMED_OUT = "it timed out"
    CANCELLED = "its job was cancelled"
    STOPPED = "an operator stopped it"
    LOST = "its lease was lost"
    SHUTDOWN = "the worker is stopping"
    LATE = "its lease may have run out before it began"


class ActiveRun:
    """A run that has started and has not been reported; instants are database time, seconds are monotonic."""

    __slots__ = (
        "began",
        "context",
        "cpu_time_ms",
        "current",
        "deadline",
        "end",
        "error",
        "excerpt",
        "finished_at",
        "is_failure",
        "is_reported",
        "job",
        "link",
        "spec",
        "started_at",
        "tasks",
        "timeout",
        "token",
        "told_at",
        "why",
    )

    def __init__(self, job: Claimed, spec: TaskSpec, *, started_at: datetime, now: float, timeout: timedelta) -> None:
        """Describe a run that starts at `now`, by the steady counter."""
        self.job = job
        self.token = job.token
        self.spec = spec
        self.link: StoreLink | None = None
        """How the handler speaks to the store, if it can."""
        self.started_at = started_at
        self.finished_at: datetime | None = None
        self.began = now
        self.current = CurrentJob.of(job)
        self.timeout = timeout
        self.deadline = now + timeout.total_seconds()
        self.tasks: set[Task[Any]] = set()
        """What the handler has started on the event loop and has not ended."""
        self.why: Why | None = None
        self.told_at = 0.0
        self.is_reported = False
        self.is_failure: bool | None = None
        """Whether the run speaks against the service its breaker guards; None if it says nothing."""
        self.context: JobContext | None = None
        self.excerpt = LogExcerpt()
        self.cpu_time_ms: int | None = None
        self.end: ChildEnd | None = None
        self.error: BaseException | None = None
        """What the handler raised, for hooks."""

    def tell(self, why: Why, now: float) -> None:
        """Note why the run is to end; the handler sees `ctx.cancelled`."""
        self.why = why
        self.told_at = now
        if self.link is not None:
            self.link.is_stopping = True

    def cut_short(self) -> Outcome | None:
        """Return the outcome of a run that did not end by itself; nothing if the store has decided already."""
        match self.why:
            case Why.TIMED_OUT:
                self.is_failure = True
                return Raised(Failure(f"timed out after {in_words(self.timeout)}", "TimedOut", reason=RunReason.TIMED_OUT))
            case Why.STOPPED:
                return Stopped()
            case Why.SHUTDOWN:
                return Released(has_started=True)
            case Why.LATE:
                return Released()
            case _:
                return None

    @property
    def again(self) -> Again | None:
        """When the handler wants to run next."""
        if self.end is not None:
            return self.end.again
        return None if self.context is None else self.context.again

    def measured(self, finished_at: datetime) -> Run:
        """Return what was measured of the run."""
        if self.end is not None:
            return self._measured_by_child(self.end, finished_at)
        context = self.context
        if context is None:
            return Run(self.started_at, finished_at, self.excerpt.text(), self.cpu_time_ms)
        return Run(
            self.started_at,
            finished_at,
            self.excerpt.text(),
            self.cpu_time_ms,
            None,
            context.items_crawled,
            context.items_indexed,
            None if context.metadata is None else _kept(context.metadata),
        )

    def _measured_by_child(self, end: ChildEnd, finished_at: datetime) -> Run:
        return Run(
            self.started_at,
            finished_at,
            end.log_excerpt,
            end.cpu_time_ms,
            end.memory_peak_mb,
            end.items_crawled,
            end.items_indexed,
            end.metadata,
        )


def _kept(metadata: dict[str, object]) -> str:
    try:
        return encode_object(metadata, field="metadata")
    except InvalidPayload as error:
        return encode_object({"error": str(error)})
