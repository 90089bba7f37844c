"""What a run came to, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.faults.judge import RECOVERY_SLACK_S, Case, Violation
from tests.faults.reasons import pid_of
from tests.faults.run import Outcome, count_kinds

MOST_STORIES = 12
WIRE_RECOVERY_S = 15.0
"""How soon a process shall work again when its way to the database is open again."""
_MOST_OF_A_RULE = 4
_ENOUGH = 100
_SLOWEST = 12


def recovery_goal_s(outcome: Outcome, kind: str) -> float:
    """Say within which time 99 of 100 recoveries shall be over."""
    if kind == "wire":
        return WIRE_RECOVERY_S
    lease_s = outcome.case.pull_lease_s if kind == "pulled" else outcome.case.lease_s
    return lease_s + RECOVERY_SLACK_S


def percentile(values: Sequence[float], share: float) -> float:
    """Read a percentile off sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def add_slow_recoveries(outcome: Outcome) -> None:
    """Count a recovery that takes too long as a violation."""
    for kind, found in outcome.verdict.recoveries_s.items():
        p99, goal = percentile(sorted(found), 0.99), recovery_goal_s(outcome, kind)
        # Of a few recoveries the slowest is no measure of what 99 of 100 do, and a busy machine may be late once.
        if p99 > (goal if len(found) >= _ENOUGH else 2 * goal):
            slowest = sorted(outcome.verdict.recovered.get(kind, []), reverse=True)[:_SLOWEST]
            shown = ", ".join(f"{seconds:.1f} s of {job_id}" for seconds, job_id in slowest)
            detail = f"{kind}: p99 is {p99:.1f} s, the goal is {goal:.1f} s; the slowest: {shown}"
            outcome.violations.append(Violation("recovery", slowest[0][1] if slowest else None, detail))


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Describe the outcome for programs."""
    case, history = outcome.case, outcome.case.history
    return {
        "database": outcome.plan.database,
        "seed": outcome.plan.seed,
        "minutes": outcome.plan.minutes,
        "seconds": round(outcome.seconds, 1),
        "jobs": len(case.snapshot.jobs),
        "runs": len(history.runs),
        "executions": len(case.snapshot.executions),
        "acknowledged": len(history.acks),
        "unanswered": len(history.sent),
        "rolled_back": len(history.rolled_back),
        "faults": len(case.faults),
        "faults_by_kind": dict(count_kinds(outcome.timeline)),
        "deaths": len(case.deaths),
        "skipped": outcome.skipped,
        "drained_s": outcome.drained_s,
        "repeats": dict(outcome.verdict.repeats),
        "worn_out": outcome.verdict.worn_out,
        "states": dict(Counter(job.state for job in case.snapshot.jobs.values())),
        "violations_by_rule": dict(Counter(each.rule for each in outcome.violations)),
        "violations": [each._asdict() for each in outcome.violations[:1000]],
        "recovery": {
            kind: {
                "count": len(found),
                "p50": round(percentile(sorted(found), 0.5), 2),
                "p99": round(percentile(sorted(found), 0.99), 2),
                "max": round(max(found), 2),
                "goal_p99": recovery_goal_s(outcome, kind),
            }
            for kind, found in outcome.verdict.recoveries_s.items()
        },
    }


def write(outcome: Outcome, folder: Path) -> None:
    """Write the report and the time line into the folder."""
    (folder / "report.json").write_text(json.dumps(as_json(outcome), indent=2) + "\n")
    with (folder / "timeline.jsonl").open("w") as file:
        events = [(fault.started_ns, fault.as_json()) for fault in outcome.case.faults]
        events += [(death.at_ns, {"kind": "death", **vars(death)}) for death in outcome.case.deaths]
        for _, event in sorted(events, key=lambda event: event[0]):
            file.write(json.dumps(event) + "\n")


def lines(outcome: Outcome) -> Iterator[str]:
    """Describe the outcome for people: a table, then the stories of what went wrong."""
    found = as_json(outcome)
    yield f"database {found['database']}, seed {found['seed']}, {found['minutes']:g} minutes"
    yield f"jobs {found['jobs']}, runs {found['runs']}, acknowledged {found['acknowledged']}, unanswered {found['unanswered']}"
    yield f"states {found['states']}"
    yield f"faults {found['faults']}: {', '.join(f'{kind} {times}' for kind, times in sorted(found['faults_by_kind'].items()))}"
    yield f"processes that ended: {found['deaths']}"
    yield f"runs repeated, by reason: {found['repeats'] or 'none'}"
    yield f"jobs that used up their attempts by faults alone: {found['worn_out']}"
    for kind, times in found["recovery"].items():
        yield (
            f"recovery of {kind}: {times['count']} times, p50 {times['p50']} s, p99 {times['p99']} s, max {times['max']} s "
            f"(goal: p99 within {times['goal_p99']:g} s)"
        )
    if steps := outcome.case.wall.steps_s:
        yield f"the machine's clock was set meanwhile, by {', '.join(f'{step:+.1f} s' for step in steps)}"
    yield "not drained" if outcome.drained_s is None else f"drained within {outcome.drained_s:.1f} s"
    yield from (f"skipped: {what}" for what in outcome.skipped)
    yield f"violations: {found['violations_by_rule'] or 'none'}"
    shown: Counter[str] = Counter()
    for each in outcome.violations:
        shown[each.rule] += 1
        if shown[each.rule] <= _MOST_OF_A_RULE and shown.total() <= MOST_STORIES * 4:
            yield f"\nVIOLATION {each.rule}{'' if each.job_id is None else f' of job {each.job_id}'}: {each.detail}"
            if each.job_id is not None:
                yield from story(outcome.case, each.job_id)


def story(case: Case, job_id: int) -> Iterator[str]:
    """Tell all that is known of a job, in the ledger's seconds."""
    job = case.snapshot.jobs.get(job_id)
    yield f"  row {job}"
    acks = [ack for ack in case.history.acks if ack.job_id == job_id]
    yield from (f"  {ack}" for ack in acks[:5])
    events: list[tuple[float, str]] = []
    for run in (run for run in case.history.runs.values() if run.job_id == job_id):
        who = case.holders.get(run.pid) or case.holders.get(run.parent) or "?"
        text = f"{who} {run.pid} of {run.parent} starts run {run.execution}, attempt {run.attempt}, lease {run.token}"
        events.append((run.started_ns / 1e9, text))
        if run.ended_ns is not None:
            events.append((run.ended_ns / 1e9, f"lease {run.token} ends: {run.how}"))
    for each in (each for each in case.snapshot.executions if each.job_id == job_id):
        at = case.wall.boot_ns(each.finished_at_us) / 1e9
        error = "" if each.error is None else f": {each.error[:200]}"
        events.append(
            (at, f"recorded: run {each.number} {each.status} {each.reason or ''} lease {each.token} of {each.worker}{error}")
        )
    if events:
        first, last = min(events)[0], max(events)[0]
        around = (first - 2 * case.lease_s) * 1e9, (last + case.lease_s) * 1e9
        for fault in case.faults:
            if fault.overlaps(round(around[0]), round(around[1])):
                ended = f"{(fault.ended_ns or 0) / 1e9:.3f}"
                events.append((fault.started_ns / 1e9, f"FAULT {fault.kind} {fault.target} until {ended} {fault.detail}"))
        pids = {run.pid for run in case.history.runs.values() if run.job_id == job_id}
        pids |= {run.parent for run in case.history.runs.values() if run.job_id == job_id}
        pids |= {pid_of(each.worker) or 0 for each in case.snapshot.executions if each.job_id == job_id}
        events += [(death.at_ns / 1e9, f"{death.role} {death.pid} is gone") for death in case.deaths if death.pid in pids]
        events += [(stop.at_ns / 1e9, f"{stop.pid} is told to stop") for stop in case.stops if stop.pid in pids]
        events += [
            (stall.from_ns / 1e9, f"{stall.pid} {'loop blocked' if stall.is_loop else 'stalled'} until {stall.to_ns / 1e9:.3f}")
            for stall in case.history.stalls
            if stall.pid in pids and stall.to_ns >= around[0] and stall.from_ns <= around[1]
        ]
    yield from (f"  {at:.3f} {text}" for at, text in sorted(events)[:60])
