"""What a worker and its child send each other, as JSON values: jobs, errors and ends of runs."""

from __future__ import annotations

import importlib
import signal
import sys
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from windlass.core.job import Claimed
from windlass.core.outcome import ERROR_LIMIT
from windlass.core.payload import MAX_BYTES, JsonText, encode_object, sanitise_result, sanitise_text
from windlass.core.signals import Signal
from windlass.core.task import TaskSpec
from windlass.errors import InvalidPayload, WindlassError
from windlass.worker.context import Again, JobContext
from windlass.worker.failure import failure_of

_OWN = (Signal, WindlassError)
_SENDABLE = (str, int, float, bool, type(None), datetime, timedelta)
_INSTANTS = tuple(place for place, field in enumerate(Claimed._fields) if field.endswith("_at"))


class ChildReturned(NamedTuple):
    """The handler came back; `result` is JSON text, None for None."""

    result: str | None


class ChildRaised(NamedTuple):
    """The handler raised."""

    kind: str
    """The error's class."""
    message: str
    """Never empty: an error without a message has its class here."""
    trace: str | None
    error: Signal | WindlassError | None = None
    """The error itself when it is one of Windlass's own, such as Retry or Snooze, with its values."""
    is_final: bool = False
    """Whether the task lists the error under `never_retry`."""
    policy: int | None = None
    """Which entry of the task's `retry_by_error` fits first."""
    is_bad_payload: bool = False
    """Whether the payload could not be read, so that the handler was never called."""
    is_cancelled: bool = False
    """Whether the coroutine ended by being cancelled."""


class Crashed(NamedTuple):
    """The child died without an answer."""

    text: str
    exit_code: int | None = None
    signal: int | None = None
    is_memory: bool = False
    """Whether it was ended for passing its memory limit."""
    is_killed: bool = False
    """Whether `kill` ended it."""


class ChildEnd(NamedTuple):
    """How a run in a child ended, and what was measured of it."""

    outcome: ChildReturned | ChildRaised | Crashed
    again: Again | None = None
    items_crawled: int | None = None
    items_indexed: int | None = None
    metadata: str | None = None
    log_excerpt: str | None = None
    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None


class Cost(NamedTuple):
    """What the child measured of a run; the totals show the parent a later run that measures nothing itself."""

    cpu_time_ms: int
    memory_peak_mb: int
    cpu_total_ms: int
    resident_mb: int


def pack_job(job: Claimed) -> list[Any]:
    """Write a job."""
    fields: list[Any] = list(job)
    for place in _INSTANTS:
        if (moment := fields[place]) is not None:
            fields[place] = moment.isoformat()
    return fields


def unpack_job(fields: list[Any]) -> Claimed:
    """Read what `pack_job` wrote."""
    for place in _INSTANTS:
        if (text := fields[place]) is not None:
            fields[place] = datetime.fromisoformat(text)
    return Claimed(*fields)


def pack_error(error: BaseException) -> list[Any] | None:
    """Write one of Windlass's own errors with its plain values; a handler's subclass travels as the class it extends."""
    own = next((each for each in type(error).__mro__ if issubclass(each, _OWN) and _can_travel(each)), None)
    if own is None:
        return None
    values = {name: _pack_value(value) for name, value in vars(error).items() if isinstance(value, _SENDABLE)}
    return [own.__module__, own.__qualname__, sanitise_text(error, ERROR_LIMIT), values]


def _can_travel(kind: type) -> bool:
    """Return whether the worker, which may not import the application, finds the class by its name."""
    is_ours = kind.__module__.partition(".")[0] == "windlass"
    return is_ours and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def unpack_error(packed: list[Any]) -> Signal | WindlassError:
    """Read what `pack_error` wrote."""
    module, name, message, values = packed
    kind = getattr(importlib.import_module(module), name)
    error: Signal | WindlassError = kind.__new__(kind)
    # Not through the class: each takes other arguments than the message it makes of them.
    error.args = (message,)
    for key, value in values.items():
        setattr(error, key, _unpack_value(value))
    return error


def _pack_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return ["at", value.isoformat()]
    if isinstance(value, timedelta):
        return ["us", value // timedelta(microseconds=1)]
    if isinstance(value, str):
        return sanitise_text(value, ERROR_LIMIT)
    return value


def _unpack_value(value: Any) -> Any:
    match value:
        case ["at", text]:
            return datetime.fromisoformat(text)
        case ["us", number]:
            return timedelta(microseconds=number)
    return value


def pack_refusal(error: Exception) -> list[Any]:
    """Write what a call raised; what is not one of Windlass's own errors arrives as a plain WindlassError."""
    plain = WindlassError(f"{type(error).__name__}: {sanitise_text(error, ERROR_LIMIT)}")
    return pack_error(error) or pack_error(plain) or []


def pack_returned(value: Any) -> list[Any]:
    """Write a handler's result."""
    return ["returned", None if value is None else sanitise_result(value, MAX_BYTES)]


def pack_raised(
    error: BaseException, spec: TaskSpec | None, *, is_bad_payload: bool = False, is_cancelled: bool = False
) -> list[Any]:
    """Write a handler's error with all that the worker cannot ask it any more."""
    failure = failure_of(error)
    never_retry = () if spec is None else spec.never_retry
    by_error = () if spec is None else spec.retry_by_error
    policy = next((place for place, (each, _) in enumerate(by_error) if isinstance(error, each)), None)
    raised = ChildRaised(
        failure.kind,
        failure.message,
        failure.trace,
        is_final=isinstance(error, never_retry),
        policy=policy,
        is_bad_payload=is_bad_payload,
        is_cancelled=is_cancelled,
    )
    return ["raised", [*raised._replace(error=None)], pack_error(error)]


def pack_end(outcome: list[Any], context: JobContext, log: str | None, cost: Cost) -> list[Any]:
    """Write the end of a run."""
    metadata = encode_metadata(context.metadata)
    again = context.again
    when = None if again is None else [_pack_value(again.at), _pack_value(again.after)]
    counts = [_count(context.items_crawled), _count(context.items_indexed)]
    return [outcome, when, *counts, metadata, log, list(cost)]


def encode_metadata(metadata: dict[str, Any] | None) -> JsonText | None:
    """Write what a handler left in `ctx.metadata`, or why it cannot be written: the end of a run may not fail on it."""
    try:
        return None if metadata is None else encode_object(metadata, field="metadata")
    except InvalidPayload as error:
        return encode_object({"error": str(error)})


def pack_bare_end(outcome: list[Any], log: str | None, cost: Cost) -> list[Any]:
    """Write the end of a run whose handler set on its context what cannot be sent."""
    return [outcome, None, None, None, None, log, list(cost)]


def _count(value: Any) -> int | None:
    """Take what a handler set for a number, as far as it is one."""
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def unpack_end(packed: list[Any]) -> tuple[ChildEnd, Cost]:
    """Read what `pack_end` wrote."""
    said, when, crawled, indexed, metadata, log, numbers = packed
    outcome: ChildReturned | ChildRaised
    if said[0] == "returned":
        outcome = ChildReturned(None if said[1] is None else JsonText(said[1]))
    else:
        outcome = ChildRaised(*said[1])._replace(error=said[2] and unpack_error(said[2]))
    again = None if when is None else Again(_unpack_value(when[0]), _unpack_value(when[1]))
    cost = Cost(*numbers)
    return ChildEnd(outcome, again, crawled, indexed, metadata, log, cost.cpu_time_ms, cost.memory_peak_mb), cost


def describe_death(status: int | None) -> Crashed:
    """Return how a process ended; `status` is what os.waitstatus_to_exitcode returns, None when it is unknown."""
    if status is None:
        return Crashed("the child process ended, and something else in the worker took its exit status")
    if status >= 0:
        return Crashed(f"the child process exited with {status} in the middle of the job", exit_code=status)
    number = -status
    text = f"the child process was killed by {_signal_name(number)}"
    if number == signal.SIGKILL:
        text += ", probably because the machine or container ran out of memory"
    return Crashed(text, signal=number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
