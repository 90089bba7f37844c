"""The outcomes that a report may have: all that an in-process worker has."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from windlass.core.durations import MAX
from windlass.core.job import MAX_TEXT, RunReason
from windlass.core.outcome import (
    ERROR_LIMIT,
    MAX_RESULT,
    Cancelled,
    Failure,
    Outcome,
    Raised,
    Released,
    Returned,
    Run,
    Snoozed,
    Stopped,
)
from windlass.core.payload import encode_object, sanitise_result
from windlass.core.reported_outcome import ReportedOutcome
from windlass.web.fields import Body

_MOST = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=_MOST)]
Wait = Annotated[float, Field(ge=0, le=MAX.total_seconds())]


class RunningIn(Body):
    """The run goes on, also past its job's target count."""

    kind: Literal["running"]
    progress_count: Count | None = None
    """How far it has come, by its own count."""

    def reported(self) -> ReportedOutcome:
        """Return it as the engine's type."""
        return ReportedOutcome(progress_count=self.progress_count)


class EndedIn(Body):
    """What was measured of a run that has ended."""

    cpu_time_ms: Count | None = None
    memory_peak_mb: Count | None = None
    items_crawled: Count | None = None
    items_indexed: Count | None = None
    metadata: dict[str, Any] | None = None

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        raise NotImplementedError

    def reported(self) -> ReportedOutcome:
        """Return everything as the engine's type."""
        run = Run(
            cpu_time_ms=self.cpu_time_ms,
            memory_peak_mb=self.memory_peak_mb,
            items_crawled=self.items_crawled,
            items_indexed=self.items_indexed,
            metadata=None if self.metadata is None else encode_object(self.metadata, field="outcome.metadata"),
        )
        return ReportedOutcome(self.outcome(), run)


class CompletedIn(EndedIn):
    """The handler came back."""

    kind: Literal["completed"]
    result: Any = None
    run_again_at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    """When a recurring job wants to run next."""

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        return Returned(None if self.result is None else sanitise_result(self.result, MAX_RESULT), self.run_again_at)


class FailedIn(EndedIn):
    """The handler failed, timed out or took its process with it."""

    kind: Literal["failed"]
    error: Annotated[str, Field(max_length=ERROR_LIMIT * 4)]
    error_type: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] = "Error"
    stack_trace: str | None = None
    reason: Literal["error", "timed_out", "worker_crashed"] = "error"
    retry_after_sec: Wait | None = None
    """In place of the job's retry policy."""
    is_final: bool = False
    """No retry helps."""

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        failure = Failure(self.error, self.error_type, self.stack_trace, RunReason(self.reason))
        after = None if self.retry_after_sec is None else timedelta(seconds=self.retry_after_sec)
        return Raised(failure, after, self.is_final)


class SnoozedIn(EndedIn):
    """The handler wants to run later; no attempt is used up."""

    kind: Literal["snoozed"]
    for_sec: Wait

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        return Snoozed(timedelta(seconds=self.for_sec))


class CancelledIn(EndedIn):
    """The handler cancelled its own job."""

    kind: Literal["cancelled"]
    reason: Annotated[str, Field(max_length=ERROR_LIMIT * 4)] = "cancelled"

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        return Cancelled(self.reason)


class ReleasedIn(EndedIn):
    """The worker gives the job back, to be run at once by any worker; no attempt is used up."""

    kind: Literal["released"]
    has_started: bool = True
    """False: no handler ever saw it, and no execution is kept."""

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        return Released(self.has_started)


class StoppedIn(EndedIn):
    """The run was stopped, as the server asked."""

    kind: Literal["stopped"]

    def outcome(self) -> Outcome:
        """Return how it ended as the engine's type."""
        return Stopped()


OutcomeIn = Annotated[
    RunningIn | CompletedIn | FailedIn | SnoozedIn | CancelledIn | ReleasedIn | StoppedIn, Field(discriminator="kind")
]
