"""Compares tables, ledger and time line, and lists every promise that was broken."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.faults.history import History, LedgerRun
from tests.faults.log_lines import internal_faults
from tests.faults.reasons import PULLED, SECOND_NS, Reasons, pid_of
from tests.faults.snapshot import ExecutionRow, JobRow, Snapshot
from tests.faults.timeline import FOREVER_NS, Death, Deaths, Fault, Stop, WallClock

MORTAL = frozenset({"doomed", "killer"})
"""The tasks whose jobs shall end as dead letters, and the only ones."""
EXCLUSIVE = frozenset({"exclusive_quick", "exclusive_nap", "exclusive_thread"})
SERVERS = frozenset({"server", "right"})
"""The roles that answer pull workers."""
HOG = "hog"
OPERATED = frozenset({"flaky", "tock"})
"""Tasks that operators hold back now and then: how late they run shows no recovery."""
RECOVERY_SLACK_S = 5.0
_NOTICED_NS = 900_000_000
"""How much later than it happened a death may be written down: the engine looks at its neighbours more often than we do."""
_STOP_S = 1.5
"""How long a handler that was told to stop may take: a second, and a moment for the machine."""
_OVERDUE_S = 15.0
_HUNG_S = 20.0
_WIRES = frozenset({"hold", "lose", "cut", "stall"})
_BREAKING = _WIRES | {"outage", "restart", "backend", "term_held", "disk"}
"""Faults by which connections end in the middle of a statement."""
_ROW_LOCKS = frozenset({"row_lock"})
_STANDING_STILL = frozenset({"freeze", "freeze_server", "suspend"})
_ANSWER_S = 2
_LOST = frozenset({"lease_expired"})
_CUT_SHORT = frozenset({"stopped", "raised"})


class Violation(NamedTuple):
    """A broken promise."""

    rule: str
    job_id: int | None
    detail: str


class Impairment(NamedTuple):
    """Why a process could not keep its leases, and for how long."""

    from_ns: int
    to_ns: int
    why: str
    is_frozen: bool = False
    """Whether its handlers stood still too."""
    loses_leases: bool = True


@dataclass
class Case:
    """All there is to judge."""

    snapshot: Snapshot
    history: History
    faults: list[Fault]
    deaths: list[Death]
    holders: dict[int, str]
    """The processes that could hold leases, with the role of each."""
    lease_s: float
    pull_lease_s: float
    wall: WallClock
    stops: list[Stop] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    """What the processes of each role wrote to standard error."""


@dataclass
class Verdict:
    """What the judge found."""

    violations: list[Violation] = field(default_factory=list)
    repeats: Counter[str] = field(default_factory=Counter)
    """Runs beyond a job's first, by the reason recorded for the one before."""
    recoveries_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    recovered: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """The same with the job of each."""
    worn_out: int = 0
    """Jobs that became dead letters by faults alone, each loss of theirs explained."""


class Judge:
    """Looks at each job once."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._runs: dict[int, list[LedgerRun]] = defaultdict(list)
        for run in case.history.runs.values():
            self._runs[run.job_id].append(run)
        for runs in self._runs.values():
            runs.sort(key=lambda run: run.started_ns)
        self._executions: dict[int, list[ExecutionRow]] = defaultdict(list)
        for execution in case.snapshot.executions:
            self._executions[execution.job_id].append(execution)
        self._letters = Counter(letter.job_id for letter in case.snapshot.letters if not letter.is_closed)
        self._deaths = Deaths(case.deaths)
        self._impairments = self._find_impairments()
        self._reasons = Reasons(case)
        self._reruns = Counter(ack.job_id for ack in case.history.acks if ack.is_duplicate and ack.on_conflict == "rerun")
        self._unknown_reruns = sum(conflict == "rerun" for conflict in case.history.sent.values())

    def judge(self) -> Verdict:
        verdict = Verdict()
        for rule in (self._enqueues, self._state, self._counts, self._cancels, self._logs):
            verdict.violations += rule()
        checks: tuple[Callable[[JobRow], Iterator[Violation]], ...] = (
            self._rest,
            self._completions,
            self._unrecorded,
            self._taken,
            self._unfit,
            self._exclusive,
            self._dead_letters,
            self._slots,
        )
        for job in self._case.snapshot.jobs.values():
            for check in checks:
                verdict.violations += check(job)
            verdict.worn_out += self._is_worn_out(job)
            self._count_repeats(job, verdict)
            self._measure_losses(job, verdict)
        self._measure_outages(verdict)
        self._measure_wires(verdict)
        return verdict

    def _find_impairments(self) -> dict[int, list[Impairment]]:
        found: dict[int, list[Impairment]] = defaultdict(list)
        for death in self._case.deaths:
            found[death.pid].append(Impairment(death.at_ns, FOREVER_NS, "died"))
        for pid, at_ns in self._case.history.anew:
            found[pid].append(Impairment(at_ns, at_ns, "started itself anew"))
        half = self._case.lease_s * SECOND_NS / 2
        suspends = [fault for fault in self._case.faults if fault.kind == "suspend"]
        for stall in self._case.history.stalls:
            if stall.is_loop or stall.to_ns - stall.from_ns >= half:
                # A blocked loop keeps its leases, and when all stand still nobody is left to take them.
                keeps = stall.is_loop or any(fault.overlaps(stall.from_ns, stall.to_ns) for fault in suspends)
                found[stall.pid].append(Impairment(stall.from_ns, stall.to_ns, "could not run", True, not keeps))  # noqa: FBT003
        for run in self._case.history.runs.values():
            if run.task == HOG:
                # Its own process writes down the stall only if it survives it.
                held = Impairment(run.started_ns, run.ended_ns or self._end_of(run), "a handler held it", is_frozen=True)
                found[run.pid].append(held)
        for fault in self._case.faults:
            for pid in fault.pids:
                to_ns = fault.ended_ns or FOREVER_NS
                found[pid].append(Impairment(fault.started_ns, to_ns, f"{fault.kind} #{fault.number}", fault.kind == "freeze"))
        return found

    def _cause(self, pid: int | None, from_ns: int, to_ns: int) -> Impairment | None:
        """Find why a process may have lost a lease within a time."""
        found = [
            each
            for each in self._impairments.get(pid or 0, ())
            if each.from_ns <= to_ns and each.to_ns >= from_ns and each.loses_leases
        ]
        return min(found, default=None)

    def _lease_ns(self, task: str) -> int:
        return round((self._case.pull_lease_s if task == PULLED else self._case.lease_s) * SECOND_NS)

    def _owner(self, run: LedgerRun) -> int:
        """Find the process that holds the lease of a run: its own, or the one that started it."""
        return run.parent if run.parent in self._case.holders and run.pid not in self._case.holders else run.pid

    def _ns(self, at_us: int) -> int:
        return self._case.wall.boot_ns(at_us)

    def _enqueues(self) -> Iterator[Violation]:
        jobs = self._case.snapshot.jobs
        for ack in self._case.history.acks:
            job = jobs.get(ack.job_id)
            if job is None:
                yield Violation("lost", ack.job_id, f"the enqueue {ack.nonce} was acknowledged, and there is no such job")
            elif not ack.is_duplicate and job.correlation_id != ack.nonce:
                yield Violation("lost", ack.job_id, f"the enqueue {ack.nonce} was answered with a job of {job.correlation_id}")
        known = Counter(job.correlation_id for job in jobs.values() if job.correlation_id)
        for nonce in self._case.history.rolled_back:
            if known[nonce]:
                yield Violation("phantom", None, f"the enqueue {nonce} was rolled back, and its job is there")
        for nonce, times in known.items():
            if times > 1:
                yield Violation("doubled", None, f"the enqueue {nonce} made {times} jobs")

    def _state(self) -> Iterator[Violation]:
        slots = Counter((job.task, job.unique_slot) for job in self._case.snapshot.jobs.values() if job.unique_slot)
        for (task, key), times in slots.items():
            if times > 1:
                yield Violation("unique", None, f"{times} active jobs of {task} have the key {key}")
        for problem in self._case.snapshot.problems:
            yield Violation("doctor", None, problem)

    def _counts(self) -> Iterator[Violation]:
        counted = Counter(job.state for job in self._case.snapshot.jobs.values())
        if counted != Counter(self._case.snapshot.counts):
            yield Violation("counts", None, f"the tables hold {dict(counted)}, the counts say {self._case.snapshot.counts}")

    def _cancels(self) -> Iterator[Violation]:
        for job_id in self._case.history.cancelled:
            job = self._case.snapshot.jobs.get(job_id)
            if job is not None and job.state != "cancelled":
                yield Violation("cancel", job_id, f"its cancellation was acknowledged, and it is {job.state}")

    def _logs(self) -> Iterator[Violation]:
        for role, text in self._case.logs.items():
            for entry in internal_faults(text):
                yield Violation("log", entry.job_id, f"{role}: {entry}")

    def _rest(self, job: JobRow) -> Iterator[Violation]:
        """After the faults every one-shot job is over, nobody holds a lease, and schedules are not overdue."""
        overdue_s = (self._case.snapshot.now_us - job.run_at_us) / 1e6
        if job.token is not None:
            yield Violation("stranded", job.id, f"{job.state}, and {job.worker} still holds its lease")
        elif not job.is_recurring and not job.is_over:
            yield Violation("stranded", job.id, f"still {job.state}, due {overdue_s:.1f} s ago")
        elif job.is_recurring and not job.is_template and (job.is_over or job.held or overdue_s > _OVERDUE_S):
            yield Violation("stranded", job.id, f"a schedule is {job.state} and due {overdue_s:.1f} s ago")

    def _completions(self, job: JobRow) -> Iterator[Violation]:
        completed = [each for each in self._executions[job.id] if each.status == "completed"]
        for each in completed:
            run = self._case.history.runs.get((job.id, each.token))
            if run is None or run.how != "ok":
                yield Violation("unrun", job.id, f"run {each.number} is recorded as completed, but its handler did not complete")
        if job.is_recurring:
            return
        most = 1 + self._reruns[job.id] + self._case.history.forced.get(job.id, 0)
        if job.task == "keyed":
            most += self._unknown_reruns
        if len(completed) > most:
            yield Violation("completions", job.id, f"completed {len(completed)} times, {most} at most were asked for")
        if job.state == "completed" and not completed:
            yield Violation("completions", job.id, "is completed without a completed run")

    def _unrecorded(self, job: JobRow) -> Iterator[Violation]:
        """Ask for every run without a record whether its process died or was cut off before it could report."""
        recorded = {each.token for each in self._executions[job.id]}
        slack = self._lease_ns(job.task) + 5 * SECOND_NS
        for run in self._runs.get(job.id, ()):
            if run.starts > 1:
                yield Violation("same_lease", job.id, f"was started {run.starts} times on one lease, {run.token}")
            if run.token in recorded or run.token == job.token:
                continue
            if job.id in self._case.history.cancelling:
                # Cancelled before its start was known: the cancel wrote that it had not run.
                continue
            ended = run.ended_ns or self._deaths.after(run.pid, run.started_ns, run.started_ns)
            if self._gave_up(run):
                continue
            if self._cause(self._owner(run), run.started_ns - slack, ended + slack) is None:
                yield Violation("unrecorded", job.id, f"ran on lease {run.token} in a healthy process, and no record says so")

    def _taken(self, job: JobRow) -> Iterator[Violation]:
        """Ask for every lease that ran out whether its process could not renew it."""
        slack = self._lease_ns(job.task) + 5 * SECOND_NS
        for each in self._executions[job.id]:
            if each.reason not in _LOST:
                continue
            lost_ns = self._ns(each.finished_at_us)
            run = self._case.history.runs.get((job.id, each.token))
            if (self._was_never_heard_of(each) or self._gave_up_early(job, each)) if run is None else self._gave_up(run):
                continue
            if self._was_held_by_a_former_self(each):
                continue
            if (objection := self._reasons.charged_at_stop(job, each)) is not None:
                yield Violation("charged", job.id, f"run {each.number}: {objection}")
            elif self._cause(pid_of(each.worker), lost_ns - slack, lost_ns + _NOTICED_NS) is None:
                yield Violation("taken", job.id, f"run {each.number} lost its lease although {each.worker} was alive and well")

    def _unfit(self, job: JobRow) -> Iterator[Violation]:
        """Ask for every other reason whether a fault, a stop or the task itself explains it."""
        for each in self._executions[job.id]:
            run = self._case.history.runs.get((job.id, each.token))
            if each.reason == "released" and (self._gave_up_early(job, each) if run is None else self._gave_up(run)):
                continue
            if (objection := self._reasons.objection(job, each)) is not None:
                yield Violation("reason", job.id, f"run {each.number} {objection}")

    def _was_held_by_a_former_self(self, execution: ExecutionRow) -> bool:
        """Whether the process of a run has started itself anew since: it keeps its number, and nobody renews for what it was.

        However late the lease is taken back: an outage or a stall of everybody else may lie between.
        """
        pid, since, lost = pid_of(execution.worker), self._ns(execution.started_at_us), self._ns(execution.finished_at_us)
        return any(anew == pid and since <= at_ns <= lost for anew, at_ns in self._case.history.anew)

    def _was_never_heard_of(self, execution: ExecutionRow) -> bool:
        """Whether nobody may have heard the answer to a claim: its worker lives and does not know of the job."""
        claimed_ns = self._ns(execution.started_at_us)
        around = claimed_ns - _ANSWER_S * SECOND_NS, claimed_ns + _ANSWER_S * SECOND_NS
        if any(fault.kind in _BREAKING and fault.overlaps(*around) for fault in self._case.faults):
            return True
        return execution.worker.startswith("pull-") and self._stood_still(*around)

    def _stood_still(self, from_ns: int, to_ns: int) -> bool:
        """Whether a server stood still within a time: it may have claimed for a worker that has asked elsewhere since."""
        faults = (fault for fault in self._case.faults if fault.kind in _STANDING_STILL)
        stalls = (stall for stall in self._case.history.stalls if self._case.holders.get(stall.pid) in SERVERS)
        return any(fault.target in SERVERS | {"everybody"} and fault.overlaps(from_ns, to_ns) for fault in faults) or any(
            stall.from_ns <= to_ns and stall.to_ns >= from_ns for stall in stalls
        )

    def _gave_up(self, run: LedgerRun) -> bool:
        """Whether an exclusive run was given up because its lease could not be renewed in time.

        Whoever was in the way, where the handler was stopped; one that had come to its end can only have been kept from
        reporting it by what concerns everybody.
        """
        if run.task not in EXCLUSIVE or run.ended_ns is None:
            return False
        was_stopped = run.how in _CUT_SHORT
        since = run.started_ns - self._lease_ns(run.task)
        return any(fault.overlaps(since, run.ended_ns) for fault in self._case.faults if was_stopped or fault.is_outage)

    def _gave_up_early(self, job: JobRow, execution: ExecutionRow) -> bool:
        """Whether an exclusive run gave up before its handler began, while its child process was being started."""
        if job.task not in EXCLUSIVE:
            return False
        pid = pid_of(execution.worker)
        within = self._ns(execution.started_at_us) - self._lease_ns(job.task), self._ns(execution.finished_at_us)
        in_the_way = (
            fault for fault in self._case.faults if fault.is_outage or pid in fault.pids or fault.kind in _BREAKING | _ROW_LOCKS
        )
        return any(fault.overlaps(*within) for fault in in_the_way)

    def _exclusive(self, job: JobRow) -> Iterator[Violation]:
        if job.task not in EXCLUSIVE:
            return
        runs = self._runs.get(job.id, [])
        numbers = {each.token: each.number for each in self._executions[job.id]}
        for first, second in itertools.pairwise(runs):
            if second.started_ns < (first.ended_ns or self._end_of(first)) and self._is_active(first, second.started_ns):
                yield Violation("overlap", job.id, f"lease {second.token} started while lease {first.token} still ran")
        for late in runs:
            before = [run for run in runs if run.started_ns < late.started_ns and numbers.get(run.token, 0) >= late.execution]
            if late.token not in numbers and late.how == "ok" and before:
                yield Violation("late_start", job.id, f"lease {late.token} started after {before[0].token} had elsewhere")

    def _end_of(self, run: LedgerRun) -> int:
        """Say when a run without an end ended: with its process, whose death is noticed only a moment later."""
        return min(self._deaths.after(pid, run.started_ns, FOREVER_NS) for pid in (run.pid, self._owner(run))) - _NOTICED_NS

    def _is_active(self, run: LedgerRun, at_ns: int) -> bool:
        """Whether a handler could do anything at a time: not while its process stood still, nor while it was being stopped."""
        return not any(
            each.is_frozen and each.from_ns <= at_ns <= each.to_ns + _STOP_S * SECOND_NS
            for pid in {run.pid, self._owner(run)}
            for each in self._impairments.get(pid, ())
        )

    def _dead_letters(self, job: JobRow) -> Iterator[Violation]:
        letters = self._letters[job.id]
        if job.state == "failed" and job.task not in MORTAL and not self._is_worn_out(job):
            yield Violation("dead_letter", job.id, f"a job of {job.task} has failed for good")
        if job.state == "failed" and letters != 1:
            yield Violation("dead_letter", job.id, f"failed, with {letters} open dead letters")
        if job.state != "failed" and letters and not job.is_recurring:
            yield Violation("dead_letter", job.id, f"{job.state}, with an open dead letter")
        if job.state == "completed" and job.task in MORTAL:
            yield Violation("dead_letter", job.id, f"a job of {job.task} cannot have completed")

    def _is_worn_out(self, job: JobRow) -> bool:
        """Whether a job has died of faults alone: every attempt it had was lost in a run whose loss is explained."""
        if job.state != "failed" or job.task in MORTAL or job.max_attempts is None:
            return False
        lost = sum(each.status == "failed" for each in self._executions[job.id])
        return lost >= job.max_attempts and not any((*self._taken(job), *self._unfit(job)))

    def _slots(self, job: JobRow) -> Iterator[Violation]:
        if not job.is_recurring or job.id in self._case.history.forced:
            return
        done = Counter(each.slot_at_us for each in self._executions[job.id] if each.status == "completed")
        for slot, times in done.items():
            if times > 1:
                yield Violation("slot", job.id, f"the time {slot} was completed {times} times")

    def _count_repeats(self, job: JobRow, verdict: Verdict) -> None:
        for before in self._executions[job.id][:-1]:
            if not job.is_recurring:
                verdict.repeats[before.reason or before.status] += 1
        recorded = {each.token for each in self._executions[job.id]}
        verdict.repeats["process died or was cut off before its first report"] += sum(
            run.token not in recorded for run in self._runs.get(job.id, ())
        )

    def _measure_losses(self, job: JobRow, verdict: Verdict) -> None:
        """Measure from the moment a process was lost until the jobs it ran were running again."""
        if job.task in OPERATED | MORTAL | {HOG} or job.is_recurring:
            return
        lost = {each.token: self._ns(each.finished_at_us) for each in self._executions[job.id] if each.reason in _LOST}
        recorded = {each.token for each in self._executions[job.id]}
        for run, following in itertools.pairwise(self._runs.get(job.id, [])):
            if run.token in recorded and (run.token not in lost or run.how == "ok"):
                continue
            cause = self._lost_by(run, lost.get(run.token))
            since = max(run.started_ns, cause.from_ns) if cause is not None else run.ended_ns or run.started_ns
            since = self._after_losses(job, since, following)
            since = self._after_outages(job.id, since, following.started_ns)
            kind = PULLED if job.task == PULLED else "job"
            seconds = max(0.0, (following.started_ns - since) / SECOND_NS)
            verdict.recoveries_s[kind].append(seconds)
            verdict.recovered[kind].append((seconds, job.id))

    def _after_losses(self, job: JobRow, since: int, following: LedgerRun) -> int:
        """Move a time to the last fault by which the job was lost once more, before its handler could begin."""
        for each in self._executions[job.id]:
            lost_ns = self._ns(each.finished_at_us)
            if (
                each.reason in _LOST
                and since < lost_ns < following.started_ns
                and (job.id, each.token) not in self._case.history.runs
            ):
                cause = self._cause(pid_of(each.worker), lost_ns - self._lease_ns(job.task), lost_ns)
                since = since if cause is None else max(since, cause.from_ns)
        return since

    def _after_outages(self, job_id: int, since: int, until: int) -> int:
        """Move a time to the end of the outages that follow it: while nobody could take the job, it could not recover."""
        for fault in self._case.faults:
            if (fault.is_outage or job_id in fault.jobs) and fault.ended_ns is not None and fault.overlaps(since, until):
                since = max(since, min(fault.ended_ns, until))
        return since

    def _lost_by(self, run: LedgerRun, lost_ns: int | None) -> Impairment | None:
        """Find what a run lost its lease by: not what was over when it could still be renewed, if there is anything else."""
        owner, lease = self._owner(run), self._lease_ns(run.task)
        slack = lease + 5 * SECOND_NS
        if lost_ns is None:
            return self._cause(owner, run.started_ns - slack, run.started_ns + slack)
        return self._cause(owner, lost_ns - lease, lost_ns) or self._cause(owner, run.started_ns - slack, lost_ns)

    def _measure_outages(self, verdict: Verdict) -> None:
        """Measure from the end of an outage until handlers start again."""
        starts = sorted(run.started_ns for run in self._case.history.runs.values() if run.task != PULLED)
        outages = [fault for fault in self._case.faults if fault.is_outage and fault.ended_ns is not None]
        for fault in outages:
            ended = fault.ended_ns or 0
            place = bisect_right(starts, ended)
            following = starts[place] if place < len(starts) else None
            if following is None or any(other is not fault and other.overlaps(ended, following) for other in outages):
                continue
            verdict.recoveries_s["outage"].append((following - ended) / SECOND_NS)

    def _measure_wires(self, verdict: Verdict) -> None:
        """Measure from the end of a fault on a wire until the processes behind it start jobs again."""
        starts: dict[int, list[int]] = defaultdict(list)
        for run in sorted(self._case.history.runs.values(), key=lambda run: run.started_ns):
            starts[self._owner(run)].append(run.started_ns)
        last_ns = max((found[-1] for found in starts.values()), default=0)
        for fault in (fault for fault in self._case.faults if fault.kind in _WIRES and fault.ended_ns is not None):
            # New connections work at once where old ones became black holes; what was claimed before may still start.
            since = fault.started_ns + SECOND_NS if fault.kind == "lose" else fault.ended_ns or 0
            for pid in {pid for pid in fault.pids if pid in starts and starts[pid][0] < since}:
                following = starts[pid][bisect_right(starts[pid], since) :]
                until = min(last_ns, self._deaths.after(pid, fault.started_ns, FOREVER_NS))
                if following and not self._is_hurt_again(fault, pid, since, following[0]):
                    verdict.recoveries_s["wire"].append((following[0] - since) / SECOND_NS)
                elif not following and until - since > _HUNG_S * SECOND_NS:
                    idle_s = (until - since) / SECOND_NS
                    detail = f"process {pid} started nothing for {idle_s:.0f} s after {fault.kind} #{fault.number}"
                    verdict.violations.append(Violation("hung", None, detail))

    def _is_hurt_again(self, fault: Fault, pid: int, from_ns: int, to_ns: int) -> bool:
        others = (other for other in self._case.faults if other is not fault and (pid in other.pids or other.is_outage))
        return any(other.overlaps(from_ns, to_ns) for other in others)
