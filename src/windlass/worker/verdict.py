"""What a handler's exception means for its job."""

from __future__ import annotations

import traceback
from random import Random
from types import TracebackType

from windlass.core.job import Claimed
from windlass.core.outcome import Cancelled, Failure, Outcome, Raised, Snoozed
from windlass.core.payload import sanitise_text
from windlass.core.signals import Cancel, Discard, Retry, Snooze
from windlass.core.task import TaskSpec
from windlass.errors import InvalidPayload

_MOST_FRAMES = 50


def outcome_of(error: BaseException, spec: TaskSpec, job: Claimed, rng: Random) -> Outcome:
    """Turn what left the handler into an outcome."""
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Cancel():
            return Cancelled(error.reason)
        case Retry():
            return Raised(failure_of(error), after=error.after)
        case Discard():
            return Raised(failure_of(error), is_final=True)
    for kind, policy in spec.retry_by_error:
        if isinstance(error, kind):
            return Raised(failure_of(error), after=policy.delay(job.attempt, rng))
    return Raised(failure_of(error), is_final=isinstance(error, (*spec.never_retry, InvalidPayload)))


def failure_of(error: BaseException) -> Failure:
    """Describe an exception; one without a message is known by its kind."""
    kind = type(error).__qualname__
    return Failure(sanitise_text(error, 4000) or kind, kind, trace_of(error))


def trace_of(error: BaseException) -> str:
    """Write the stack trace from the handler's own first frame on."""
    try:
        return "".join(traceback.format_exception(type(error), error, _below_ours(error.__traceback__), limit=-_MOST_FRAMES))
    except Exception:  # noqa: BLE001 - an exception whose text cannot be made must still be recorded
        return f"{type(error).__qualname__}: its stack trace could not be written"


def _below_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace


def _is_ours(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_globals.get("__name__", "")
    return isinstance(name, str) and name.startswith("windlass.worker")
