"""Asks of every run that did not complete whether the reason recorded for it fits what happened."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from tests.faults.history import LedgerRun
from tests.faults.snapshot import ExecutionRow, JobRow

if TYPE_CHECKING:
    from tests.faults.history import History
    from tests.faults.timeline import Death, Fault, Stop

SECOND_NS = 1_000_000_000
PULLED = "pulled"
KILLER = "killer"
STUCK = "stuck"
"""The task that blocks its event loop beyond its timeout, so that its process is replaced."""
STUCK_TIMEOUT_S = 1.0
FAILING = frozenset({"flaky", "doomed", PULLED})
"""The tasks whose handlers raise on purpose."""
REPLACED = frozenset({"keyed"})
"""The tasks whose jobs an enqueue may cancel in favour of a newer one."""
_WORKERS_OWN = frozenset({"term", "term_held"})
_MOMENT_NS = SECOND_NS
"""How far the clocks of a worker, the database and this judge may be apart."""
_CRASH_NS = 5 * SECOND_NS
"""How long it may take until the end of a child process is recorded."""


class Evidence(Protocol):
    """The parts of a case that reasons are judged by."""

    history: History
    faults: list[Fault]
    deaths: list[Death]
    stops: list[Stop]
    holders: dict[int, str]
    boot_offset_us: int


class Reasons:
    """Finds an explanation for a recorded reason, or returns why there is none."""

    def __init__(self, case: Evidence) -> None:
        self._case = case
        self._told: dict[int, int] = {}
        for stop in case.stops:
            self._told.setdefault(stop.pid, stop.at_ns)
        self._deaths = {death.pid: death.at_ns for death in case.deaths}
        self._stuck: dict[int, list[LedgerRun]] = defaultdict(list)
        for run in case.history.runs.values():
            if run.task == STUCK:
                self._stuck[run.pid].append(run)
        self._child_kills = [fault for fault in case.faults if fault.kind == "kill_child"]

    def objection(self, job: JobRow, execution: ExecutionRow) -> str | None:
        """Return what is wrong with the reason of a run; None if it fits. Lost leases are judged elsewhere."""
        run = self._case.history.runs.get((job.id, execution.token))
        match execution.reason:
            case None | "lease_expired":
                return None
            case "released":
                return self._released(execution)
            case "error":
                return self._error(job, execution, run)
            case "timed_out":
                return self._timed_out(job, execution, run)
            case "worker_crashed":
                return self._worker_crashed(job, execution, run)
            case "cancelled" | "stopped" | "superseded":
                is_asked_for = job.id in self._case.history.cancelling or job.task in REPLACED
                return None if is_asked_for else f"is recorded as {execution.reason}, and nobody asked for that"
            case reason:
                return f"is recorded as {reason}, which no task of this application causes"

    def was_told(self, execution: ExecutionRow) -> int | None:
        """Return when the worker of a run had been told to stop, if that was before the run was over."""
        told = self._told.get(pid_of(execution.worker) or 0)
        return told if told is not None and told <= self._ended_ns(execution) + _MOMENT_NS else None

    def charged_at_stop(self, job: JobRow, execution: ExecutionRow) -> str | None:
        """Return what is wrong with a lease that was lost by a process that stopped in order: it gives back what it holds."""
        pid = pid_of(execution.worker) or 0
        told = self.was_told(execution)
        run = self._case.history.runs.get((job.id, execution.token))
        if told is None or pid not in self._case.holders or (run is not None and (run.ended_ns or told) < told - _MOMENT_NS):
            return None
        died = self._deaths.get(pid, told)
        around = min(told, run.started_ns if run is not None else told), max(told, died)
        role = self._case.holders[pid]
        if any(
            fault.kind not in _WORKERS_OWN and fault.overlaps(*around) and self._concerns(fault, pid, role)
            for fault in self._case.faults
        ) or any(fault.kind == "term_held" and fault.overlaps(*around) for fault in self._case.faults):
            return None
        if any(stall.pid == pid and stall.from_ns <= around[1] and stall.to_ns >= around[0] for stall in self._case.history.stalls):
            return None
        return f"{execution.worker} was told to stop, in order and unhurt, and its attempt was charged"

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
        overdue = STUCK_TIMEOUT_S * SECOND_NS - _MOMENT_NS
        return any(
            run.started_ns + overdue <= ended <= (run.ended_ns or self._deaths.get(run.pid, ended)) + _MOMENT_NS
            for run in self._stuck[pid_of(execution.worker) or 0]
        )

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
        return (execution.finished_at_us - self._case.boot_offset_us) * 1000


def pid_of(worker: str) -> int | None:
    """Read the process out of a worker's name."""
    found = re.fullmatch(r"pull-(\d+)|.*:(\d+):[0-9a-f]+", worker)
    return None if found is None else int(found[1] or found[2])
