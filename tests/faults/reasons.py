"""Asks of every run that did not complete whether the reason recorded for it fits what happened."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from tests.faults.timeline import Deaths

if TYPE_CHECKING:
    # Not for the processes under attack, which read the constants below: each would load all of the store.
    from tests.faults.history import History, LedgerRun
    from tests.faults.snapshot import ExecutionRow, JobRow
    from tests.faults.timeline import Death, Fault, Stop, WallClock

SECOND_NS = 1_000_000_000
PULLED = "pulled"
KILLER = "killer"
STUCK = "stuck"
"""The task that blocks its event loop beyond its timeout, so that its process is replaced."""
STUCK_TIMEOUT_S = 1.0
FAILING = frozenset({"flaky", "doomed", PULLED})
"""The tasks whose handlers raise on purpose."""
HOLDING = frozenset({STUCK, "blocker", "hog", KILLER})
"""The tasks that keep their process from stopping in order."""
REPLACED = frozenset({"keyed"})
"""The tasks whose jobs an enqueue may cancel in favour of a newer one."""
_ELSEWHERE = frozenset({None, "lease_expired"})
_ON_REQUEST = frozenset({"cancelled", "stopped", "superseded"})
_MOMENT_NS = SECOND_NS
"""How far the clocks of a worker, the database and this judge may be apart."""
_LONG_NS = 60 * SECOND_NS
"""How long after the end of a process its leases have been taken back for certain."""
_CRASH_NS = 5 * SECOND_NS
"""How long it may take until the end of a child process is recorded."""


class Evidence(Protocol):
    """The parts of a case that reasons are judged by."""

    history: History
    faults: list[Fault]
    deaths: list[Death]
    stops: list[Stop]
    holders: dict[int, str]
    wall: WallClock


class Reasons:
    """Finds an explanation for a recorded reason, or returns why there is none."""

    def __init__(self, case: Evidence) -> None:
        self._case = case
        self._told: dict[int, list[int]] = defaultdict(list)
        for stop in case.stops:
            self._told[stop.pid].append(stop.at_ns)
        self._deaths = Deaths(case.deaths)
        self._holding: dict[int, list[LedgerRun]] = defaultdict(list)
        for run in case.history.runs.values():
            if run.task in HOLDING:
                self._holding[run.pid].append(run)
        self._child_kills = [fault for fault in case.faults if fault.kind == "kill_child"]

    def objection(self, job: JobRow, execution: ExecutionRow) -> str | None:
        """Return what is wrong with the reason of a run; None if it fits. Lost leases are judged elsewhere."""
        if execution.reason in _ELSEWHERE:
            return None
        run = self._case.history.runs.get((job.id, execution.token))
        match execution.reason:
            case "released":
                found = self._released(execution)
            case "error":
                found = self._error(job, execution, run)
            case "timed_out":
                found = self._timed_out(job, execution, run)
            case "worker_crashed":
                found = self._worker_crashed(job, execution, run)
            case reason:
                found = self._ended_by_others(job, reason)
        return found

    def was_told(self, execution: ExecutionRow) -> int | None:
        """Return when the worker of a run had been told to stop, if that was before the run was over."""
        pid, ended_ns = pid_of(execution.worker) or 0, self._ended_ns(execution)
        before = (at_ns for at_ns in self._told[pid] if at_ns <= ended_ns + _MOMENT_NS)
        # Not an earlier process of the same number: that one ended long before.
        return min((at_ns for at_ns in before if self._deaths.after(pid, at_ns, ended_ns) > ended_ns - _LONG_NS), default=None)

    def charged_at_stop(self, job: JobRow, execution: ExecutionRow) -> str | None:
        """Return what is wrong with a lease that was lost by a process that stopped in order: it gives back what it holds."""
        pid = pid_of(execution.worker) or 0
        told = self.was_told(execution)
        run = self._case.history.runs.get((job.id, execution.token))
        if told is None or pid not in self._case.holders or (run is not None and (run.ended_ns or told) < told - _MOMENT_NS):
            return None
        from_ns = min(told, run.started_ns if run is not None else told)
        if self._is_hurt(pid, from_ns, max(told, self._deaths.after(pid, told, told))):
            return None
        return f"{execution.worker} was told to stop, in order and unhurt, and its attempt was charged"

    def _is_hurt(self, pid: int, from_ns: int, to_ns: int) -> bool:
        """Whether anything but the wish to stop happened to a process within a time."""
        faults = (fault for fault in self._case.faults if fault.kind != "term" and fault.overlaps(from_ns, to_ns))
        stalls = (stall for stall in self._case.history.stalls if stall.pid == pid)
        return (
            any(self._concerns(fault, pid, self._case.holders[pid]) for fault in faults)
            or any(stall.from_ns <= to_ns and stall.to_ns >= from_ns for stall in stalls)
            or any(run.started_ns <= to_ns and (run.ended_ns or to_ns) >= from_ns for run in self._holding[pid])
        )

    @staticmethod
    def _concerns(fault: Fault, pid: int, role: str) -> bool:
        return pid in fault.pids or fault.is_outage or fault.target in {role, "database"} or fault.target.startswith("wire")

    def _released(self, execution: ExecutionRow) -> str | None:
        if self.was_told(execution) is not None or self._is_replaced(execution):
            return None
        return f"was given back although {execution.worker} was neither told to stop nor replaced"

    def _is_replaced(self, execution: ExecutionRow) -> bool:
        """Whether the worker's process was being replaced: a handler had blocked its event loop beyond its timeout."""
        ended = self._ended_ns(execution)
        # No moment is taken off: a process is replaced only when the grace is over too.
        overdue = STUCK_TIMEOUT_S * SECOND_NS
        return any(
            run.started_ns + overdue <= ended <= (run.ended_ns or self._deaths.after(run.pid, run.started_ns, ended)) + _MOMENT_NS
            for run in self._holding[pid_of(execution.worker) or 0]
            if run.task == STUCK
        )

    def _ended_by_others(self, job: JobRow, reason: str | None) -> str | None:
        if reason not in _ON_REQUEST:
            return f"is recorded as {reason}, which no task of this application causes"
        is_asked_for = job.id in self._case.history.cancelling or job.task in REPLACED
        return None if is_asked_for else f"is recorded as {reason}, and nobody asked for that"

    @staticmethod
    def _error(job: JobRow, execution: ExecutionRow, run: LedgerRun | None) -> str | None:
        if job.task not in FAILING:
            return f"failed with an error, and {job.task} raises none: {execution.error}"
        if run is None or run.how != "raised":
            return f"failed with an error that its handler did not raise: {execution.error}"
        return None

    def _timed_out(self, job: JobRow, execution: ExecutionRow, run: LedgerRun | None) -> str | None:
        if job.task != STUCK:
            return f"timed out, and no job of {job.task} takes that long"
        if run is not None and self._ended_ns(execution) < run.started_ns + STUCK_TIMEOUT_S * SECOND_NS - _MOMENT_NS:
            return f"timed out before {STUCK_TIMEOUT_S:g} s had passed"
        return None

    def _worker_crashed(self, job: JobRow, execution: ExecutionRow, run: LedgerRun | None) -> str | None:
        if job.task == KILLER:
            return None
        ended = self._ended_ns(execution)
        role = self._case.holders.get(pid_of(execution.worker) or 0)
        for fault in self._child_kills:
            # A child that was killed before its handler began is known by its worker only.
            is_victim = fault.target == role if run is None else run.pid in fault.pids
            if is_victim and fault.overlaps(ended - _CRASH_NS, ended + _MOMENT_NS):
                return None
        return f"its child process ended, and nothing had been done to it: {execution.error}"

    def _ended_ns(self, execution: ExecutionRow) -> int:
        return self._case.wall.boot_ns(execution.finished_at_us)


def pid_of(worker: str) -> int | None:
    """Read the process out of a worker's name."""
    found = re.fullmatch(r"pull-(\d+)|.*:(\d+):[0-9a-f]+", worker)
    return None if found is None else int(found[1] or found[2])
