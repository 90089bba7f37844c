"""One run while it goes on."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from windlass.core.cadence import EPOCH
from windlass.core.durations import in_words
from windlass.core.job import Claimed, RunReason
from windlass.core.outcome import Failure, Outcome, Raised, Released, Run, Stopped
from windlass.core.task import TaskSpec
from windlass.worker.context import Again, JobContext
from windlass.worker.link import StoreLink
from windlass.worker.logs import LoggedRun
from windlass.worker.wire import ChildEnd, encode_metadata

if TYPE_CHECKING:
    from windlass.otel import RunSpan


class Why(Enum):
    """Why a run is to end before its handler comes back."""

    TIMED_OUT = "it timed out"
    CANCELLED = "its job was cancelled"
    STOPPED = "an operator stopped it"
    LOST = "its lease was lost"
    EXPIRED = "its lease could not be renewed in time"
    SHUTDOWN = "the worker is stopping"
    LATE = "its lease may have run out before it began"


class ActiveRun:
    """A run that has started and has not been reported; instants are database time, seconds are monotonic."""

    # What most runs never set is not set for each of them.
    link: StoreLink | None = None
    """Sends the handler's calls to the store, if it can make any."""
    finished_us: int | None = None
    why: Why | None = None
    asked_at = 0.0
    is_reported = False
    is_failure: bool | None = None
    """Whether the run counts against the service its breaker guards; None if it counts neither way."""
    context: JobContext | None = None
    cpu_time_ms: int | None = None
    end: ChildEnd | None = None
    error: BaseException | None = None
    """What the handler raised, for hooks."""
    traced: RunSpan | None = None
    """Its span, if it has one."""

    def __init__(self, job: Claimed, spec: TaskSpec, *, started_us: int, now: float, timeout: timedelta) -> None:
        """Describe a run that starts at `now`, by the steady counter."""
        self.job = job
        self.token = job.token
        self.logged = LoggedRun(job)
        """What is known of it in its context, which timers may keep for long after its end."""
        self.spec = spec
        self.started_us = started_us
        self.began = now
        self.timeout = timeout
        self.deadline = now + timeout.total_seconds()

    def trace(self, traced: RunSpan) -> None:
        """Have log lines and child processes of the run carry its own trace."""
        self.traced = traced
        self.job = self.logged.job = traced.job

    @property
    def started_at(self) -> datetime:
        """When it started."""
        return EPOCH + timedelta(microseconds=self.started_us)

    @property
    def finished_at(self) -> datetime | None:
        """When it ended, if that was noted."""
        return None if self.finished_us is None else EPOCH + timedelta(microseconds=self.finished_us)

    @property
    def is_bare(self) -> bool:
        """Whether nothing was measured but times, and the handler has not chosen when the next run is."""
        if self.end is not None or self.logged.excerpt is not None:
            return False
        context = self.context
        return context is None or (
            context.items_crawled is None and context.items_indexed is None and context.metadata is None and context.again is None
        )

    def ask_to_end(self, why: Why, now: float) -> None:
        """Note why the run is to end; the handler sees `ctx.cancelled`."""
        self.why = why
        self.asked_at = now
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
            case Why.SHUTDOWN | Why.EXPIRED:
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
            return Run(self.started_at, finished_at, self.logged.text, self.cpu_time_ms)
        return Run(
            self.started_at,
            finished_at,
            self.logged.text,
            self.cpu_time_ms,
            None,
            context.items_crawled,
            context.items_indexed,
            encode_metadata(context.metadata),
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
