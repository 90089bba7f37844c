"""The verbs of circuit breakers: a row changes only with its state, and every change moves the gates.

The failures of a closed one are counted in a row of their own, which is there only while the service fails. It is always
written before the breaker is locked: the other way round, two calls could wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

from windlass.core import breaker as rules
from windlass.core.audit import Deed
from windlass.core.breaker import (
    SHORTEST_OPEN,
    Admission,
    Breaker,
    BreakerEvent,
    BreakerPermit,
    BreakerReason,
    BreakerSpec,
    BreakerState,
)
from windlass.core.checks import check_characters, check_range, check_text, check_wait
from windlass.core.durations import Duration, parse_duration
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME, Claimed, Lease, Slices
from windlass.core.page import CappedCount
from windlass.core.payload import encode_object
from windlass.errors import InvalidInput, LeaseLost
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.reads import MAX_LIST, count_capped
from windlass.store.rows import SHAPES, Row, Shape

_MAX_TOKEN = 2**63 - 1
# Leaves room for the probes that fail after it.
_MAX_FAILURES = 1_000_000_000
KEEP_EVENTS = timedelta(days=30)
_BREAKER = Shape((6, 7, 8, 9, 14, 16), (13, 15))
# The columns between which the record puts the permit.
_PERMIT = slice(10, 12)

SHAPES |= {
    "get_breaker": _BREAKER,
    "list_breakers": _BREAKER,
    "change_breaker": _BREAKER,
    "list_breaker_events": Shape((5,)),
    "holds_lease": Shape((), (0,)),
    "claim_probe": rows.CLAIMED,
    "claim_suspect_probe": rows.CLAIMED,
}


def breaker_of(row: Row) -> Breaker:
    """Read a breaker."""
    values = list(row)
    values[1] = BreakerState(values[1])
    values[5] = timedelta(microseconds=values[5])
    values[_PERMIT] = [BreakerPermit(*values[_PERMIT])]
    return Breaker(*values)


def _found(rows: Sequence[Row]) -> Breaker | None:
    return breaker_of(rows[0]) if rows else None


def _breakers(rows: Sequence[Row]) -> list[Breaker]:
    return [breaker_of(row) for row in rows]


def _events(rows: Sequence[Row]) -> list[BreakerEvent]:
    return [BreakerEvent(row[0], row[1], BreakerState(row[2]), BreakerReason(row[3]), *row[4:]) for row in rows]


def get(name: str) -> Call[Breaker | None]:
    """Read one breaker; one without a row has never left closed."""
    check_text("breaker", name, MAX_NAME)
    return single("get_breaker", {"name": name}, _found, is_read=True)


def list_breakers(*, after: str = "", limit: int = MAX_LIST) -> Call[list[Breaker]]:
    """Read breakers by name."""
    check_characters("after", after)
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_breakers", {"after_name": after, "limit": limit}, _breakers, is_read=True)


def history(name: str, limit: int = MAX_LIST) -> Call[list[BreakerEvent]]:
    """Read a breaker's changes, newest first."""
    check_text("breaker", name, MAX_NAME)
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_breaker_events", {"name": name, "limit": limit}, _events, is_read=True)


def prune_events(keep: timedelta = KEEP_EVENTS, *, limit: int = 1000) -> Call[int]:
    """Delete old changes, but for the last of each breaker; returns how many."""
    check_wait("keep", keep, least=timedelta())
    check_range("limit", limit, 1, 10_000)
    return single("prune_breaker_events", {"keep_for": keep, "limit": limit}, len)


def look(spec: BreakerSpec, caller: BreakerPermit) -> Call[Admission | None]:
    """Return whether a caller may go ahead, without writing; nothing when it would be the probe."""
    _check_caller(caller)
    if caller.job_id is None and caller.token is not None:
        raise InvalidInput("token", caller.token, "goes with the job_id of the job it was claimed with")
    params = {"name": spec.name}
    return single("get_breaker", params, lambda found: rules.admit(_found(found), spec, caller), is_read=True)


def admit(spec: BreakerSpec, caller: BreakerPermit) -> Call[Admission]:
    """Let a caller go ahead if it may, as the one probe where that is due; raises LeaseLost for a probe without its job."""

    def steps(_: Means) -> Steps[Admission]:
        found = yield from _locked(spec.name)
        admission = rules.admit(found, spec, caller)
        if admission is not None or found is None:
            return admission or Admission(is_admitted=True)
        if caller.job_id is not None:
            [[holds_lease]] = yield Step("holds_lease", caller._asdict())
            if not holds_lease:
                raise LeaseLost(caller.job_id)
        probed = yield from _changed(found.meant_by(spec).probed(caller), BreakerReason.PROBE_STARTED, caller.job_id)
        return Admission(is_admitted=True, is_probe=True, token=probed.probe.token)

    return Call(steps)


def record(spec: BreakerSpec, caller: BreakerPermit, *, succeeded: bool, failures: int) -> Call[BreakerState]:
    """Note a result: a probe's, a success that ends a row of failures, or more failures; returns the state it is left in."""
    _check_caller(caller)
    check_range("failures", failures, 0, _MAX_FAILURES)

    def steps(_: Means) -> Steps[BreakerState]:
        total = 0
        if succeeded:
            yield Step("clear_breaker_failures", {"name": spec.name})
        else:
            total = yield from _counted(spec, failures)
            if 0 < total < spec.threshold:
                return BreakerState.CLOSED
        if total >= spec.threshold:
            yield Step("clear_breaker_failures", {"name": spec.name})
            yield Step("ensure_breaker", _spec_params(spec))
        found = yield from _locked(spec.name)
        if found is None:
            return BreakerState.CLOSED
        change = rules.take_result(found, spec, caller, succeeded=succeeded, failures=total)
        if change is None:
            return found.state
        changed = yield from _changed(*change, caller.job_id)
        return changed.state

    return Call(steps, is_urgent=True, wakes=lambda state: wakes.work(state is BreakerState.CLOSED))


def _counted(spec: BreakerSpec, failures: int) -> Steps[int]:
    """Add failures to those of all processes, while the breaker is closed; returns how many there are in a row."""
    found = _found((yield Step("get_breaker", {"name": spec.name})))
    if not failures or (found is not None and found.state is not BreakerState.CLOSED):
        # A run that began before it opened shows nothing new.
        return 0
    [[total]] = yield Step("add_breaker_failures", {"name": spec.name, "failures": failures})
    return int(total)


def count_failures(name: str) -> Call[int]:
    """Count the failures in a row of a closed breaker, over all processes."""
    check_text("breaker", name, MAX_NAME)
    return single("count_breaker_failures", {"name": name}, lambda found: int(found[0][0]), is_read=True)


def reset(name: str) -> Call[Breaker | None]:
    """Close a breaker, even while a run is trying it; nothing when it has never left closed."""
    check_text("breaker", name, MAX_NAME)

    def steps(_: Means) -> Steps[Breaker | None]:
        yield Step("clear_breaker_failures", {"name": name})
        found = yield from _locked(name)
        if found is None or found.state is BreakerState.CLOSED:
            return found
        return (yield from _changed(found.closed(), BreakerReason.RESET, None))

    def tell(left: Breaker | None) -> Deed:
        return Deed("reset", f"breaker:{name}", "done" if left is not None else "refused")

    return Call(steps, wakes=wakes.work, deed=tell)


def force_open(name: str, for_: Duration | None = None) -> Call[Breaker]:
    """Open a breaker, even while a run is trying it; without a duration until it is reset."""
    spec = BreakerSpec(name)
    length = None if for_ is None else parse_duration(for_, field="for")
    if length is not None:
        check_wait("for", length, least=SHORTEST_OPEN)

    def steps(_: Means) -> Steps[Breaker]:
        yield Step("clear_breaker_failures", {"name": name})
        yield Step("ensure_breaker", _spec_params(spec))
        found = yield from _locked(name)
        assert found is not None  # noqa: S101 - made by the step before, and rows of breakers are never deleted
        return (yield from _changed(found.forced(length), BreakerReason.FORCED, None))

    return Call(steps, deed=_was_forced)


def _was_forced(left: Breaker) -> Deed:
    until = None if left.probe_at is None else left.probe_at.isoformat()
    return Deed("force open", f"breaker:{left.name}", details=encode_object({"until": until}))


def count() -> Call[CappedCount]:
    """Count them, up to a bound."""
    return count_capped("count_breakers")


def claim_probe(found: Slices, name: str, lease: Lease) -> Call[Claimed | None]:
    """Take the permit of a breaker that is due and one job of its slices with it, or nothing at all."""
    check_text("breaker", name, MAX_NAME)
    check_text("worker", lease.worker, MAX_NAME)

    def steps(_: Means) -> Steps[Claimed | None]:
        breaker = yield from _locked(name)
        if breaker is None or not breaker.is_due:
            return None
        job = yield from _claimed(found, breaker, lease)
        if job is not None:
            yield from _changed(breaker.probed(BreakerPermit(job.id, job.token)), BreakerReason.PROBE_STARTED, job.id)
        return job

    return Call(steps, is_engine=True)


def _claimed(found: Slices, breaker: Breaker, lease: Lease) -> Steps[Claimed | None]:
    """Claim any other job before the one that the last probe was made with, and a suspect only where nothing else waits."""
    params = {"version": found.version, "token": lease.token, "worker": lease.worker, "lease": lease.length, "started": True}
    # A reader of merged slices knows suspects only as `open`.
    parts = {"claim_probe": found.open, "claim_suspect_probe": found.suspects or found.open}
    for query, avoid in product(parts, dict.fromkeys((breaker.last_probe_job_id or 0, 0))):
        for part in parts[query]:
            if part.breaker == breaker.name:
                slice_params = {"lane": part.lane, "task": part.task, "avoid": avoid}
                taken = rows.claimed((yield Step(query, params | slice_params)))
                if taken:
                    return taken[0]
    return None


def _locked(name: str) -> Steps[Breaker | None]:
    yield Step("lock_breaker", {"name": name})
    return _found((yield Step("get_breaker", {"name": name})))


def _changed(after: Breaker, reason: BreakerReason, job_id: int | None) -> Steps[Breaker]:
    [[version]] = yield Step("move_gates", {})
    if after.state is BreakerState.HALF_OPEN and after.probe.token is None:
        # A probe without a job is known by the version its permit moved the gates to: no other caller has it.
        after = replace(after, probe=BreakerPermit(None, version))
    changed = breaker_of((yield Step("change_breaker", _row_params(after)))[0])
    yield Step("add_breaker_event", {"name": after.name, "state": after.state, "reason": reason, "job_id": job_id})
    return changed


def _check_caller(caller: BreakerPermit) -> None:
    if caller.job_id is not None:
        check_range("job_id", caller.job_id, 1, MAX_JOB)
    if caller != BreakerPermit():
        check_range("token", caller.token, 0, _MAX_TOKEN)


def _spec_params(spec: BreakerSpec) -> dict[str, Any]:
    open_us = batches.microseconds(spec.open_for)
    return {"name": spec.name, "threshold": spec.threshold, "open_us": open_us}


def _row_params(breaker: Breaker) -> dict[str, Any]:
    return {
        "name": breaker.name,
        "state": breaker.state,
        "failures": breaker.failures,
        "successes": breaker.successes,
        "threshold": breaker.threshold,
        "open_us": batches.microseconds(breaker.open_for),
        "last_failure_at": breaker.last_failure_at,
        "opened_at": breaker.opened_at,
        "probe_at": breaker.probe_at,
        "half_opened_at": breaker.half_opened_at,
        "probe_job_id": breaker.probe.job_id,
        "probe_token": breaker.probe.token,
        "last_probe_job_id": breaker.last_probe_job_id,
        "is_forced": breaker.is_forced,
    }
