"""The outcome of a run as a worker over HTTP reports it; the server decides what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from windlass.core.outcome import (
    ERROR_LIMIT,
    NO_RUN,
    Cancelled,
    Failure,
    Outcome,
    Raised,
    Released,
    Returned,
    Run,
    Snoozed,
    ascii_only,
    bounded,
)
from windlass.core.payload import decode, sanitise_text

RUNNING = "running"
COMPLETED = "completed"
FAILED = "failed"
SNOOZED = "snoozed"
CANCELLED = "cancelled"
RELEASED = "released"
STOPPED = "stopped"


class ReportedOutcome(NamedTuple):
    """How a run ended and what was measured of it; without an outcome it goes on, however much it has found."""

    outcome: Outcome | None = None
    run: Run = NO_RUN
    progress_count: int | None = None
    """How far the run has come, by its own count."""

    def document(self) -> dict[str, Any]:
        """Write it as `outcome` of a report has it."""
        if self.outcome is None:
            return _given({"kind": RUNNING, "progress_count": self.progress_count})
        return _given(_ended(self.outcome) | _measured(self.run))

    def bare(self) -> ReportedOutcome:
        """Keep how the run ended and drop all content: what the server refused was content."""
        outcome = self.outcome
        if isinstance(outcome, Returned):
            return ReportedOutcome(outcome._replace(result=None))
        if isinstance(outcome, Raised):
            failure = Failure(ascii_only(outcome.failure.message), reason=outcome.failure.reason)
            return ReportedOutcome(outcome._replace(failure=failure))
        return ReportedOutcome(outcome)


def _ended(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Returned(result, run_again_at):
            again = None if run_again_at is None else run_again_at.isoformat()
            return {"kind": COMPLETED, "result": None if result is None else decode(result), "run_again_at": again}
        case Raised(failure, after, is_final):
            wait = None if after is None else max(after.total_seconds(), 0.0)
            return {"kind": FAILED, **_failed(failure), "retry_after_sec": wait, "is_final": is_final or None}
        case Snoozed(delay):
            return {"kind": SNOOZED, "for_sec": max(delay.total_seconds(), 0.0)}
        case Cancelled(reason):
            return {"kind": CANCELLED, "reason": sanitise_text(reason, ERROR_LIMIT)}
        case Released(has_started):
            return {"kind": RELEASED, "has_started": has_started}
        case _:
            return {"kind": STOPPED}


def _failed(failure: Failure) -> dict[str, Any]:
    told = bounded(failure)
    return {"error": told.message, "error_type": told.kind, "stack_trace": told.trace, "reason": told.reason.value}


def _measured(run: Run) -> dict[str, Any]:
    return {
        "cpu_time_ms": run.cpu_time_ms,
        "memory_peak_mb": run.memory_peak_mb,
        "items_crawled": run.items_crawled,
        "items_indexed": run.items_indexed,
        "metadata": None if run.metadata is None else decode(run.metadata),
    }


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
