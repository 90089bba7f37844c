"""The judge finds every broken promise in forged tables and ledgers, and nothing in sound ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

import windlass
from tests.faults.history import Ack, History, LedgerRun, Stall
from tests.faults.judge import Case, Judge, Verdict
from tests.faults.reasons import SECOND_NS
from tests.faults.snapshot import ExecutionRow, JobRow, LetterRow, Snapshot
from tests.faults.timeline import Death, Fault, Stop, WallClock

LEASE_S = 4.0
LEFT, RIGHT, THIRD, CHILD = 101, 102, 103, 203
JOB = 7
END_S = 100


@dataclass
class Forged:
    """A case made by hand; seconds count from the machine's start, and the database's clock is the same."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    history: History = field(default_factory=History)
    faults: list[Fault] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] | None = None

    def job(self, job_id: int = JOB, *, task: str = "nap", state: str = "completed", **changes: object) -> None:
        row = JobRow(
            job_id, task, state, 1, 1, 0, None, None, is_recurring=False, is_template=False, unique_slot=None,
            correlation_id=f"nonce-{job_id}", run_at_us=0, created_at_us=0,
        )  # fmt: skip
        self.snapshot.jobs[job_id] = row._replace(**changes)  # type: ignore[arg-type]
        self.history.acks.append(Ack(f"nonce-{job_id}", job_id, is_duplicate=False, on_conflict="-"))

    def run(self, token: int, start_s: float, end_s: float | None, *, pid: int = LEFT, how: str = "ok", **more: object) -> None:
        task = self.snapshot.jobs[JOB].task
        run = LedgerRun(JOB, token, 1, 1, task, pid, 1, round(start_s * SECOND_NS))
        if end_s is not None:
            run.ended_ns, run.how = round(end_s * SECOND_NS), how
        for name, value in more.items():
            setattr(run, name, value)
        self.history.runs[JOB, token] = run

    def execution(
        self, token: int, status: str, reason: str | None, end_s: float, *, pid: int = LEFT, start_s: float = 0
    ) -> None:
        number = len(self.snapshot.executions) + 1
        row = ExecutionRow(JOB, number, token, f"host:{pid}:0a", status, reason, round(start_s * 1e6), round(end_s * 1e6))
        self.snapshot.executions.append(row)

    def completed(self, token: int, start_s: float, end_s: float, *, pid: int = LEFT) -> None:
        self.run(token, start_s, end_s, pid=pid, execution=len(self.snapshot.executions) + 1)
        self.execution(token, "completed", None, end_s, pid=pid)

    def fault(self, kind: str, from_s: float, to_s: float, pids: list[int], *, is_outage: bool = False) -> None:
        number = len(self.faults) + 1
        self.faults.append(Fault(number, kind, "x", round(from_s * SECOND_NS), round(to_s * SECOND_NS), pids, is_outage))

    def dies(self, pid: int, at_s: float) -> None:
        self.deaths.append(Death(pid, "left", round(at_s * SECOND_NS)))

    def told_to_stop(self, pid: int, at_s: float) -> None:
        self.stops.append(Stop(pid, round(at_s * SECOND_NS)))

    def other(self, task: str, start_s: float, end_s: float | None, *, pid: int = LEFT) -> None:
        """Let a process run a job of another task too."""
        self.job(8, task=task, state="cancelled")
        run = LedgerRun(8, 3, 1, 1, task, pid, 1, round(start_s * SECOND_NS))
        if end_s is not None:
            run.ended_ns, run.how = round(end_s * SECOND_NS), "ok"
        self.history.runs[8, 3] = run

    def judge(self) -> Verdict:
        states = [job.state for job in self.snapshot.jobs.values()]
        self.snapshot.counts = {state: states.count(state) for state in states} if self.counts is None else self.counts
        self.snapshot.now_us = END_S * 1_000_000
        holders = {LEFT: "left", RIGHT: "right", THIRD: "skewed"}
        wall = WallClock()
        wall.look(0, 0)
        case = Case(
            self.snapshot, self.history, self.faults, self.deaths, holders, LEASE_S, 30.0, wall, stops=self.stops, logs=self.logs
        )
        return Judge(case).judge()

    def rules(self) -> list[str]:
        return sorted({each.rule for each in self.judge().violations})


@pytest.fixture
def forged() -> Forged:
    made = Forged()
    made.job()
    return made


def test_instants_of_the_database_are_read_by_the_clock_of_their_time() -> None:
    wall = WallClock()
    wall.look(1_000_000, 0)
    wall.look(3_000_000, 2_000_000)
    wall.look(44_000_000, 3_000_000)
    assert wall.steps_s == [40.0]
    assert [wall.boot_ns(at_us) for at_us in (500_000, 3_500_000, 44_500_000)] == [-500_000_000, 2_500_000_000, 3_500_000_000]


def test_a_sound_run_breaks_nothing(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    assert forged.rules() == []


def test_a_job_taken_from_a_killed_process_is_explained_and_its_recovery_measured(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.dies(LEFT, 11)
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 15.5, 16, pid=RIGHT)
    verdict = forged.judge()
    assert verdict.violations == []
    assert verdict.recoveries_s["job"] == [pytest.approx(4.5)]
    assert verdict.repeats["lease_expired"] == 1


def test_recovery_counts_from_what_the_lease_was_lost_by(forged: Forged) -> None:
    forged.run(1, 10, 19, how="stopped")
    forged.fault("freeze", 10.5, 11, [LEFT])
    forged.fault("freeze", 12, 18, [LEFT])
    forged.execution(1, "failed", "lease_expired", 16)
    forged.completed(2, 16.5, 17, pid=RIGHT)
    assert forged.judge().recoveries_s["job"] == [pytest.approx(4.5)]


def test_recovery_counts_from_the_end_of_an_outage(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.dies(LEFT, 11)
    forged.fault("restart", 12, 20, [], is_outage=True)
    forged.completed(2, 25, 26, pid=RIGHT)
    assert forged.judge().recoveries_s["job"] == [pytest.approx(5.0)]


@pytest.mark.parametrize(("locked", "seconds"), [(JOB, 5.0), (JOB + 1, 14.0)])
def test_recovery_counts_from_when_a_stranger_lets_go_of_the_job(forged: Forged, locked: int, seconds: float) -> None:
    forged.run(1, 10, None)
    forged.dies(LEFT, 11)
    forged.fault("row_lock", 12, 20, [])
    forged.faults[-1].jobs = [locked]
    forged.completed(2, 25, 26, pid=RIGHT)
    assert forged.judge().recoveries_s["job"] == [pytest.approx(seconds)]


def test_recovery_counts_from_the_last_loss_when_a_job_is_lost_again_before_its_handler_begins(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.dies(LEFT, 11)
    forged.execution(2, "failed", "lease_expired", 18, pid=RIGHT)
    forged.completed(3, 20, 21, pid=THIRD)
    assert forged.judge().recoveries_s["job"] == [pytest.approx(9.0)]
    forged.dies(RIGHT, 17)
    assert forged.judge().recoveries_s["job"] == [pytest.approx(3.0)]


def test_a_run_in_a_child_belongs_to_the_process_that_started_it(forged: Forged) -> None:
    forged.run(1, 10, None, pid=CHILD, parent=LEFT)
    forged.dies(LEFT, 11)
    forged.completed(2, 15.5, 16, pid=RIGHT)
    assert forged.rules() == []


def test_an_acknowledged_job_that_is_gone_is_lost(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.acks.append(Ack("nonce-8", 8, is_duplicate=False, on_conflict="-"))
    assert forged.rules() == ["lost"]


def test_an_answer_with_another_job_is_a_loss(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.acks.append(Ack("nonce-8", JOB, is_duplicate=False, on_conflict="-"))
    assert forged.rules() == ["lost"]


def test_a_duplicate_is_answered_with_the_job_that_held_the_key(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.acks.append(Ack("nonce-8", JOB, is_duplicate=True, on_conflict="ignore"))
    assert forged.rules() == []


def test_a_rolled_back_enqueue_leaves_no_job(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.rolled_back.add("nonce-7")
    assert forged.rules() == ["phantom"]


def test_one_enqueue_makes_one_job(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.snapshot.jobs[8] = forged.snapshot.jobs[JOB]._replace(id=8, state="cancelled")
    assert forged.rules() == ["doubled"]


@pytest.mark.parametrize("state", ["pending", "scheduled", "paused"])
def test_a_job_that_nobody_takes_is_stranded(forged: Forged, state: str) -> None:
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(state=state)
    assert forged.rules() == ["stranded"]


@pytest.mark.parametrize("state", ["running", "cancelled"])
def test_a_lease_that_nobody_gives_back_is_stranded(forged: Forged, state: str) -> None:
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(state=state, token=1, worker="host:1:a")
    assert forged.rules() == ["stranded"]


def test_a_schedule_that_is_not_fired_is_stranded(forged: Forged) -> None:
    row = forged.snapshot.jobs[JOB]._replace(is_recurring=True, state="scheduled", run_at_us=60_000_000)
    forged.snapshot.jobs[JOB] = row
    assert forged.rules() == ["stranded"]
    forged.snapshot.jobs[JOB] = row._replace(run_at_us=99_000_000)
    assert forged.rules() == []


def test_a_completed_one_shot_job_completes_once(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.completed(2, 12, 13)
    assert forged.rules() == ["completions"]


def test_a_rerun_may_complete_again(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.completed(2, 12, 13)
    forged.history.acks.append(Ack("nonce-8", JOB, is_duplicate=True, on_conflict="rerun"))
    assert forged.rules() == []


def test_a_completed_job_has_a_completed_run(forged: Forged) -> None:
    assert forged.rules() == ["completions"]


def test_what_is_recorded_as_completed_has_run(forged: Forged) -> None:
    forged.run(1, 10, 11, how="raised")
    forged.execution(1, "completed", None, 11)
    assert forged.rules() == ["unrun"]


def test_a_run_of_a_healthy_process_is_recorded(forged: Forged) -> None:
    forged.run(1, 10, 11)
    forged.completed(2, 15, 16)
    assert forged.rules() == ["unrecorded"]


def test_one_lease_is_run_once(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.runs[JOB, 1].starts = 2
    assert forged.rules() == ["same_lease"]


def test_a_lease_is_not_taken_from_the_living(forged: Forged) -> None:
    forged.run(1, 10, 19)
    forged.execution(1, "failed", "lease_expired", 16)
    forged.completed(2, 17, 18, pid=RIGHT)
    # Nobody may lose a lease by a stranger's lock, or because the database is away for all.
    forged.fault("row_lock", 10, 16, [])
    forged.fault("restart", 10, 16, [], is_outage=True)
    assert forged.rules() == ["taken"]


def test_a_claim_whose_answer_was_lost_is_taken_back(forged: Forged) -> None:
    forged.execution(1, "failed", "lease_expired", 16)
    forged.snapshot.executions = [forged.snapshot.executions[0]._replace(started_at_us=12_000_000)]
    forged.completed(2, 17, 18, pid=RIGHT)
    assert forged.rules() == ["taken"]
    forged.fault("cut", 12.5, 12.5, [])
    assert forged.rules() == []
    # A handler that was started has been heard of.
    forged.run(1, 12, 17)
    assert forged.rules() == ["taken"]


@pytest.mark.parametrize(("target", "rules"), [("server", []), ("right", []), ("left", ["taken"])])
def test_a_server_that_stood_still_may_have_pulled_for_nobody(forged: Forged, target: str, rules: list[str]) -> None:
    forged.job(task="pulled")
    forged.execution(1, "failed", "lease_expired", 42)
    forged.snapshot.executions = [forged.snapshot.executions[0]._replace(started_at_us=12_000_000, worker="pull-301")]
    forged.completed(2, 43, 44, pid=RIGHT)
    assert forged.rules() == ["taken"]
    forged.fault("freeze", 10, 12.1, [LEFT])
    forged.faults[-1].target = target
    assert forged.rules() == rules


def test_a_server_whose_process_was_held_may_have_pulled_for_nobody(forged: Forged) -> None:
    forged.job(task="pulled")
    forged.execution(1, "failed", "lease_expired", 42)
    forged.snapshot.executions = [forged.snapshot.executions[0]._replace(started_at_us=12_000_000, worker="pull-301")]
    forged.completed(2, 43, 44, pid=RIGHT)
    forged.history.stalls.append(Stall(LEFT, 10 * SECOND_NS, 12 * SECOND_NS, is_loop=True))
    assert forged.rules() == ["taken"]
    forged.history.stalls.append(Stall(RIGHT, 10 * SECOND_NS, 12 * SECOND_NS, is_loop=True))
    assert forged.rules() == []


@pytest.mark.parametrize("kind", ["hold", "freeze", "kill"])
def test_a_lease_may_be_taken_from_who_could_not_renew_it(forged: Forged, kind: str) -> None:
    forged.run(1, 10, 19)
    forged.execution(1, "failed", "lease_expired", 16)
    forged.completed(2, 17, 18, pid=RIGHT)
    forged.fault(kind, 10, 16, [LEFT])
    assert forged.rules() == []


def test_a_short_stall_explains_no_lost_lease(forged: Forged) -> None:
    forged.run(1, 10, 19)
    forged.execution(1, "failed", "lease_expired", 16)
    forged.completed(2, 17, 18, pid=RIGHT)
    forged.history.stalls.append(Stall(LEFT, 11 * SECOND_NS, 12 * SECOND_NS, is_loop=False))
    assert forged.rules() == ["taken"]
    forged.history.stalls.append(Stall(LEFT, 11 * SECOND_NS, 16 * SECOND_NS, is_loop=False))
    assert forged.rules() == []


def test_nobody_loses_a_lease_because_the_whole_machine_slept(forged: Forged) -> None:
    forged.run(1, 10, 19)
    forged.execution(1, "failed", "lease_expired", 17)
    forged.completed(2, 17, 18, pid=RIGHT)
    forged.history.stalls.append(Stall(LEFT, 11 * SECOND_NS, 16 * SECOND_NS, is_loop=False))
    forged.fault("suspend", 11, 16, [], is_outage=True)
    assert forged.rules() == ["taken"]


def test_a_handler_that_held_the_interpreter_explains_what_its_process_lost(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 16)
    forged.completed(2, 17, 18, pid=RIGHT)
    forged.dies(LEFT, 17)
    assert forged.rules() == ["taken"]
    forged.job(8, task="hog", state="cancelled")
    forged.history.runs[8, 3] = LedgerRun(8, 3, 1, 1, "hog", LEFT, 1, 11 * SECOND_NS)
    assert forged.rules() == []


def test_exclusive_runs_do_not_overlap() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, 18)
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    forged.fault("hold", 10, 16, [LEFT])
    assert forged.rules() == ["overlap"]


def test_a_death_may_be_noticed_after_the_engine_has_acted_on_it() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 15, 17, pid=RIGHT)
    forged.dies(LEFT, 15.5)
    assert forged.rules() == []
    # Another process that the system gave the same number later.
    forged.dies(LEFT, 60)
    assert forged.rules() == []
    forged.deaths.clear()
    forged.dies(LEFT, 16.5)
    assert "overlap" in forged.rules()


def test_a_process_that_starts_itself_anew_loses_the_leases_it_held(forged: Forged) -> None:
    forged.run(1, 10, 12, how="replaced")
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    assert forged.rules() == ["taken"]
    forged.history.anew.append((LEFT, 12 * SECOND_NS))
    assert forged.rules() == []


def test_a_lease_from_before_a_process_started_itself_anew_may_be_taken_late(forged: Forged) -> None:
    forged.run(1, 10, 12, how="replaced")
    forged.execution(1, "failed", "lease_expired", 32, start_s=10)
    forged.completed(2, 33, 34, pid=RIGHT)
    forged.history.anew.append((LEFT, 9 * SECOND_NS))
    assert "taken" in forged.rules()
    forged.history.anew.append((LEFT, 12 * SECOND_NS))
    assert forged.rules() == []


def test_an_exclusive_run_gives_up_when_its_lease_cannot_be_renewed() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, 14, how="stopped")
    forged.execution(1, "failed", "lease_expired", 19)
    forged.completed(2, 20, 21, pid=RIGHT)
    assert forged.rules() == ["taken"]
    forged.fault("table_lock", 10, 16, [], is_outage=True)
    assert forged.rules() == []


def test_an_exclusive_run_that_has_ended_may_be_given_up_while_nobody_reaches_the_database(forged: Forged) -> None:
    forged.job(task="exclusive_nap")
    forged.run(1, 10, 14)
    forged.execution(1, "failed", "lease_expired", 19)
    forged.completed(2, 20, 21, pid=RIGHT)
    forged.fault("cut", 9, 16, [RIGHT])
    assert forged.rules() == ["taken"]
    forged.fault("outage", 10, 16, [], is_outage=True)
    assert forged.rules() == []


def test_an_exclusive_run_may_give_up_before_its_handler_begins(forged: Forged) -> None:
    forged.job(task="exclusive_nap")
    forged.execution(1, "failed", "lease_expired", 19)
    forged.snapshot.executions = [forged.snapshot.executions[0]._replace(started_at_us=10_000_000)]
    forged.completed(2, 20, 21, pid=RIGHT)
    forged.fault("freeze", 11, 16, [RIGHT])
    forged.fault("table_lock", 3, 5, [], is_outage=True)
    assert forged.rules() == ["taken"]
    forged.fault("table_lock", 10, 16, [], is_outage=True)
    assert forged.rules() == []
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(task="nap")
    assert forged.rules() == ["taken"]


def test_a_frozen_run_does_nothing_and_so_overlaps_nothing() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, 18.2, how="stopped")
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    forged.fault("freeze", 11, 18, [LEFT])
    assert forged.rules() == []


def test_a_killed_run_ends_with_its_process() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, None)
    forged.dies(LEFT, 11)
    forged.execution(1, "failed", "lease_expired", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    assert forged.rules() == []


def test_an_exclusive_job_does_not_start_on_a_lease_that_is_gone() -> None:
    forged = Forged()
    forged.job(task="exclusive_quick")
    forged.completed(2, 16, 16.1, pid=RIGHT)
    forged.run(1, 18, 18.1)
    forged.fault("freeze", 11, 17.9, [LEFT])
    assert forged.rules() == ["late_start"]


def test_only_mortal_tasks_die(forged: Forged) -> None:
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(state="failed")
    forged.snapshot.letters.append(LetterRow(JOB, is_closed=False))
    assert forged.rules() == ["dead_letter"]
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(task="killer")
    assert forged.rules() == []
    forged.snapshot.letters.clear()
    assert forged.rules() == ["dead_letter"]


def test_a_job_that_lives_has_no_dead_letter(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.snapshot.letters.append(LetterRow(JOB, is_closed=False))
    assert forged.rules() == ["dead_letter"]


def test_a_job_is_given_back_only_by_a_process_that_was_told_to_stop(forged: Forged) -> None:
    forged.run(1, 10, 13, how="stopped")
    forged.execution(1, "cancelled", "released", 13)
    forged.completed(2, 14, 15, pid=RIGHT)
    forged.told_to_stop(RIGHT, 10)
    forged.fault("hold", 10, 13, [LEFT])
    assert forged.rules() == ["reason"]
    forged.told_to_stop(LEFT, 20)
    assert forged.rules() == ["reason"]
    forged.stops.clear()
    forged.told_to_stop(LEFT, 11)
    assert forged.rules() == []


def test_an_exclusive_run_is_given_back_where_its_lease_could_not_be_renewed() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.run(1, 10, 15, how="stopped")
    forged.execution(1, "cancelled", "released", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    assert forged.rules() == ["reason"]
    forged.fault("hold", 10, 14, [LEFT])
    assert forged.rules() == []


def test_an_exclusive_run_is_given_back_by_a_process_that_stood_still_before_it_could_start() -> None:
    forged = Forged()
    forged.job(task="exclusive_nap")
    forged.execution(1, "cancelled", "released", 15)
    forged.completed(2, 16, 17, pid=RIGHT)
    assert forged.rules() == ["reason"]
    forged.fault("freeze", 10, 15, [LEFT])
    assert forged.rules() == []


def test_a_job_is_given_back_by_a_process_that_is_replaced(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.execution(1, "cancelled", "released", 14)
    forged.completed(2, 15, 16, pid=RIGHT)
    forged.dies(LEFT, 14)
    assert forged.rules() == ["reason"]
    forged.other("stuck", 13.9, None)
    assert forged.rules() == ["reason"]
    forged.history.runs[8, 3].started_ns = 11 * SECOND_NS
    assert forged.rules() == []
    forged.history.runs[8, 3].ended_ns = 12 * SECOND_NS
    assert forged.rules() == ["reason"]


@pytest.mark.parametrize(
    ("task", "how", "rules"), [("flaky", "raised", []), ("flaky", "ok", ["reason"]), ("nap", "raised", ["reason"])]
)
def test_only_tasks_that_raise_fail_with_an_error(forged: Forged, task: str, how: str, rules: list[str]) -> None:
    forged.job(task=task)
    forged.run(1, 10, 11, how=how)
    forged.execution(1, "failed", "error", 11)
    forged.completed(2, 12, 13)
    assert forged.rules() == rules


def test_an_error_without_a_run_is_not_the_handlers(forged: Forged) -> None:
    forged.job(task="flaky")
    forged.execution(1, "failed", "error", 11)
    forged.completed(2, 12, 13)
    assert forged.rules() == ["reason"]


def test_only_what_takes_too_long_times_out(forged: Forged) -> None:
    forged.run(1, 10, 13, how="stopped")
    forged.execution(1, "failed", "timed_out", 13)
    forged.completed(2, 14, 15)
    assert forged.rules() == ["reason"]
    forged.job(task="stuck")
    assert forged.rules() == []
    forged.history.runs[JOB, 1].started_ns = 14 * SECOND_NS
    assert forged.rules() == ["reason"]


def test_a_child_process_ends_because_somebody_killed_it(forged: Forged) -> None:
    forged.run(1, 10, None, pid=CHILD, parent=LEFT)
    forged.execution(1, "failed", "worker_crashed", 12)
    forged.completed(2, 14, 15)
    forged.fault("kill_child", 11, 11, [CHILD + 1])
    assert forged.rules() == ["reason"]
    forged.fault("kill_child", 11, 11, [CHILD])
    assert forged.rules() == []
    forged.faults[-1].started_ns = forged.faults[-1].ended_ns = 13 * SECOND_NS + 1
    assert forged.rules() == ["reason"]


def test_a_child_process_may_be_killed_before_its_handler_starts(forged: Forged) -> None:
    forged.execution(1, "failed", "worker_crashed", 12)
    forged.completed(2, 14, 15)
    forged.fault("kill_child", 11, 11, [CHILD])
    assert forged.rules() == ["reason"]
    forged.faults[-1].target = "left"
    assert forged.rules() == []


def test_a_task_may_end_its_own_process(forged: Forged) -> None:
    forged.job(task="killer", state="failed")
    forged.run(1, 10, None, pid=CHILD, parent=LEFT)
    forged.execution(1, "failed", "worker_crashed", 12)
    forged.snapshot.letters.append(LetterRow(JOB, is_closed=False))
    assert forged.rules() == []


@pytest.mark.parametrize("reason", ["cancelled", "stopped", "superseded"])
def test_a_run_is_cancelled_only_on_request(forged: Forged, reason: str) -> None:
    forged.job(state="cancelled")
    forged.run(1, 10, 11, how="stopped")
    forged.execution(1, "cancelled", reason, 11)
    assert forged.rules() == ["reason"]
    forged.history.cancelling.add(JOB)
    assert forged.rules() == []


def test_a_reason_that_no_task_causes_does_not_fit(forged: Forged) -> None:
    forged.run(1, 10, 11, how="raised")
    forged.execution(1, "cancelled", "snoozed", 11)
    forged.completed(2, 12, 13)
    assert forged.rules() == ["reason"]


def test_a_stop_in_order_charges_no_attempt(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 14)
    forged.completed(2, 15, 16, pid=RIGHT)
    forged.dies(LEFT, 14)
    assert forged.rules() == []
    forged.told_to_stop(LEFT, 11)
    forged.fault("term", 11, 11, [])
    assert forged.rules() == ["charged"]
    # It may say goodbye some time before it ends.
    forged.deaths.clear()
    forged.dies(LEFT, 16)
    assert forged.rules() == ["charged"]


@pytest.mark.parametrize("kind", ["kill", "freeze", "restart", "term_held"])
def test_a_stop_that_was_hurt_may_charge(forged: Forged, kind: str) -> None:
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 14)
    forged.completed(2, 15, 16, pid=RIGHT)
    forged.dies(LEFT, 14)
    forged.told_to_stop(LEFT, 11)
    forged.fault(kind, 12, 13, [LEFT])
    assert forged.rules() == []


def test_a_stop_that_a_handler_held_up_may_charge(forged: Forged) -> None:
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 14)
    forged.completed(2, 15, 16, pid=RIGHT)
    forged.dies(LEFT, 14)
    forged.told_to_stop(LEFT, 11)
    forged.other("blocker", 9, None)
    assert forged.rules() == []
    forged.history.runs[8, 3].ended_ns = 9 * SECOND_NS
    assert forged.rules() == ["charged"]


def test_a_job_dies_of_faults_only_when_each_of_its_attempts_was_lost_by_one(forged: Forged) -> None:
    forged.job(state="failed", max_attempts=2)
    forged.snapshot.letters.append(LetterRow(JOB, is_closed=False))
    forged.dies(LEFT, 11)
    forged.run(1, 10, None)
    forged.execution(1, "failed", "lease_expired", 15)
    assert forged.rules() == ["dead_letter"]
    forged.run(2, 16, None, pid=RIGHT)
    forged.execution(2, "failed", "lease_expired", 21, pid=RIGHT)
    assert forged.rules() == ["dead_letter", "taken"]
    forged.dies(RIGHT, 17)
    verdict = forged.judge()
    assert verdict.violations == []
    assert verdict.worn_out == 1


_AT = "2026-01-16 10:00:00.000"
_OWN_FRAME = f'  |   File "{windlass.__file__}", line 1, in go'


@pytest.mark.parametrize(
    "line",
    [
        f"{_AT} ERROR   job 7 is held without a run; it is given back job_id=7",
        f"{_AT} ERROR   the end of a run could not be judged job_id=7",
        f"{_AT} ERROR   the end of a run could not be reported job_id=7",
        f"{_AT} ERROR   a slot of pool default stopped because of an error; it starts again",
        f"{_AT} ERROR   a slot's thread ended early: CancelledError()",
        f"{_AT} ERROR   Task exception was never retrieved",
        "Exception in thread windlass-loop-watch:",
        "sys:1: RuntimeWarning: coroutine 'finish' was never awaited",
        f"{_AT} ERROR   GET /jobs failed\n  | Traceback (most recent call last):\n{_OWN_FRAME}\n  | KeyError: 'id'",
        f"Traceback (most recent call last):\n{_OWN_FRAME[4:]}\nwindlass.errors.StoreRefused: bad text",
    ],
)
def test_a_log_line_that_shows_an_internal_fault_is_a_violation(forged: Forged, line: str) -> None:
    forged.completed(1, 10, 11)
    forged.logs["left"] = f"{_AT} INFO    job completed job_id=7\n{line}\n{_AT} INFO    job completed job_id=7\n"
    [violation] = forged.judge().violations
    assert violation.rule == "log"
    assert violation.job_id == (JOB if "job_id=7" in line else None)


@pytest.mark.parametrize(
    "line",
    [
        f"{_AT} WARNING no jobs can be claimed: the database is away",
        f"{_AT} ERROR   job failed job_id=7\n  | Traceback (most recent call last):\n{_OWN_FRAME}\n  | ValueError: never",
        f"{_AT} ERROR   GET / failed\n  | Traceback (most recent call last):\n{_OWN_FRAME}\n  | windlass.errors.StoreBusy: late",
        "Traceback (most recent call last):\n  File \"elsewhere.py\", line 1, in go\nKeyError: 'id'",
        (
            f"{_AT} ERROR   Exception in ASGI application\n  | Traceback (most recent call last):\n{_OWN_FRAME}\n"
            "  | asyncio.exceptions.CancelledError: Task cancelled, timeout graceful shutdown exceeded"
        ),
    ],
)
def test_what_handlers_and_the_database_do_is_no_internal_fault(forged: Forged, line: str) -> None:
    forged.completed(1, 10, 11)
    forged.logs["left"] = f"{line}\n"
    assert forged.rules() == []


def test_a_key_is_active_once(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.snapshot.jobs[JOB] = forged.snapshot.jobs[JOB]._replace(unique_slot="a")
    forged.job(8, state="cancelled", unique_slot="a")
    assert forged.rules() == ["unique"]


def test_counts_are_exact(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.counts = {"completed": 2}
    assert forged.rules() == ["counts"]


def test_what_the_doctor_finds_is_a_violation(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.snapshot.problems.append("lease of job 7: …")
    assert forged.rules() == ["doctor"]


def test_an_acknowledged_cancel_wins(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.history.cancelled.add(JOB)
    assert forged.rules() == ["cancel"]


def test_a_planned_time_is_completed_once(forged: Forged) -> None:
    row = forged.snapshot.jobs[JOB]
    forged.snapshot.jobs[JOB] = row._replace(is_recurring=True, state="scheduled", run_at_us=99_000_000)
    forged.completed(1, 10, 11)
    forged.completed(2, 12, 13)
    forged.snapshot.executions = [each._replace(slot_at_us=5) for each in forged.snapshot.executions]
    assert forged.rules() == ["slot"]


def test_a_process_that_never_works_again_is_found(forged: Forged) -> None:
    forged.completed(1, 10, 11)
    forged.fault("hold", 12, 15, [LEFT])
    forged.job(8)
    forged.history.runs[8, 2] = LedgerRun(8, 2, 1, 1, "nap", RIGHT, 1, 60 * SECOND_NS, 61 * SECOND_NS, "ok")
    forged.snapshot.executions.append(ExecutionRow(8, 1, 2, f"host:{RIGHT}:0a", "completed", None, 0, 61_000_000))
    assert forged.rules() == ["hung"]
    # One that was killed before the connection came back has an excuse.
    forged.dies(LEFT, 13)
    assert forged.rules() == []


def test_recovery_from_an_outage_is_measured_to_the_next_start(forged: Forged) -> None:
    forged.fault("restart", 5, 8, [], is_outage=True)
    forged.completed(1, 10, 11)
    assert forged.judge().recoveries_s["outage"] == [pytest.approx(2.0)]
