"""Why the jobs of a lane or of a task do or do not move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from windlass.core.explanation import Check, Explanation, Situation, counted, holds, passes, typed
from windlass.core.fleet_facts import EndedRuns, FleetFacts
from windlass.core.gate import GateKind
from windlass.core.gate_checks import (
    check_breaker,
    check_lane,
    check_slots,
    check_task,
    check_upkeep,
    check_workers,
    first_closed,
)
from windlass.core.job import Count, JobState
from windlass.core.record import record

MOST_PARTS = 20
"""How many tasks of a lane, or lanes of a task, are looked at: those with the most due jobs."""
_FEWEST_RUNS = 5
_MOST_FAILED = 0.5


class GatedPart(NamedTuple):
    """The due jobs of one lane and task."""

    lane: str
    task: str
    due: int


@record(kw_only=True)
class GateFacts:
    """A lane or a task, its jobs, and what is around it."""

    fleet: FleetFacts
    kind: GateKind
    name: str
    counts: Sequence[Count] = ()
    """Its jobs; those of other lanes and tasks are left out."""
    lately: EndedRuns = field(default_factory=EndedRuns)
    """Of a task: the runs that ended within the last hour."""

    @property
    def states(self) -> Mapping[JobState, int]:
        """Its jobs by state."""
        states: Counter[JobState] = Counter()
        for one in self.counts:
            states[one.state] += one.jobs
        return states


def parts_of(counts: Sequence[Count]) -> list[GatedPart]:
    """List lanes and tasks with due jobs, the most first."""
    due: Counter[tuple[str, str]] = Counter()
    for one in counts:
        if one.state is JobState.PENDING:
            due[one.lane, one.task] += one.jobs
    return [GatedPart(lane, task, jobs) for (lane, task), jobs in due.most_common(MOST_PARTS) if jobs > 0]


class _Looked(NamedTuple):
    own: list[Check]
    """What holds all of its jobs back alike."""
    parts: list[Check]
    """For each lane or task beside it, the first gate that holds back."""
    failing: Check | None


def explain_gate(facts: GateFacts) -> Explanation:
    """Explain a lane or a task."""
    parts = [_part(facts, part) for part in parts_of(facts.counts)]
    looked = _Looked(_own(facts), parts, _failing(facts) if facts.kind is GateKind.TASK else None)
    last = [] if looked.failing is None else [looked.failing]
    verdict, reason, command = _verdict(facts, looked)
    return Explanation(
        subject=facts.kind.value,
        name=facts.name,
        verdict=verdict,
        sentence=f"{reason[:1].upper()}{reason[1:]}.",
        command=command,
        details=(*looked.own, _jobs(facts), *parts, *last),
        read_at=facts.fleet.now,
    )


def _own(facts: GateFacts) -> list[Check]:
    """Check what holds back all jobs of the lane or task alike."""
    fleet, name = facts.fleet, facts.name
    # Without it, what is scheduled never becomes due.
    upkeep = [check_upkeep(fleet, "promote")] if facts.states.get(JobState.SCHEDULED) else []
    if facts.kind is GateKind.TASK:
        return [check_task(fleet, name), check_breaker(fleet, name), *upkeep]
    slots = check_slots(fleet, name)
    return [check_lane(fleet, name), *upkeep, *([] if slots is None else [slots])]


def _jobs(facts: GateFacts) -> Check:
    states = facts.states
    shown = ", ".join(f"{states[state]} {state.value}" for state in JobState if states.get(state))
    return passes("jobs", f"{counted(states.get(JobState.PENDING, 0), 'job')} due; in all {shown or 'none'}")


def _part(facts: GateFacts, part: GatedPart) -> Check:
    """Check the gates of one lane and task that were not checked for all of them, and name the first that holds back."""
    fleet = facts.fleet
    if facts.kind is GateKind.LANE:
        gate, name = "task", part.task
        closed = first_closed([check_task(fleet, name), check_breaker(fleet, name), *check_workers(fleet, part.lane, name)])
    else:
        gate, name = "lane", part.lane
        slots = check_slots(fleet, name, part.task)
        last = [] if slots is None else [slots]
        closed = first_closed([check_lane(fleet, name), *check_workers(fleet, name, part.task), *last])
    due = f"{gate} {name}, {counted(part.due, 'due job')}"
    if closed is None:
        return passes(gate, f"{due}: nothing holds {'it' if part.due == 1 else 'them'} back")
    return Check(gate, closed.passed, f"{due}: {closed.reason}", closed.verdict, closed.command)


def _failing(facts: GateFacts) -> Check:
    runs = facts.lately
    counted_runs = runs.completed + runs.failed
    reason = f"within the last hour {counted(runs.completed, 'run')} completed and {runs.failed} failed"
    if counted_runs >= _FEWEST_RUNS and runs.failed / counted_runs >= _MOST_FAILED:
        return holds("failures", reason, Situation.FAILING, typed("dead", "--task", facts.name, "--status", "open"))
    return passes("failures", reason)


def _verdict(facts: GateFacts, looked: _Looked) -> tuple[Situation, str, str | None]:
    title = f"{facts.kind.value} {facts.name}"
    closed = first_closed(looked.own)
    # Busy slots hold nothing back where nothing waits.
    if closed is not None and closed.verdict is not None and (looked.parts or closed.gate != "slots"):
        return closed.verdict, closed.reason, closed.command
    held = [check for check in looked.parts if check.passed is not True]
    if held:
        return _held(facts, looked.parts, held)
    if looked.failing is not None and looked.failing.passed is False:
        return Situation.FAILING, f"most runs of {title} fail: {looked.failing.reason}", looked.failing.command
    if not looked.parts:
        return Situation.EMPTY, f"no job of {title} is due", None
    return Situation.FLOWING, f"nothing holds {title} back: {_jobs(facts).reason}", None


def _held(facts: GateFacts, parts: list[Check], held: list[Check]) -> tuple[Situation, str, str | None]:
    first = held[0]
    is_all = len(held) == len(parts)
    verdict = first.verdict if is_all and first.verdict is not None else Situation.HELD_BACK
    if len(parts) == 1:
        return verdict, first.reason, first.command
    what = "tasks" if facts.kind is GateKind.LANE else "lanes"
    share = f"all {len(parts)}" if is_all else f"{len(held)} of {len(parts)}"
    return verdict, f"{share} {what} with due jobs are held back; {first.reason}", first.command
