"""What is wrong at this moment, worst first, each with the page that shows it and what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windlass.core.alert_rules import AlertSeverity
from windlass.core.alerts import ShownAlert
from windlass.core.gate import ALL_LANES, Lane
from windlass.core.job import JobState
from windlass.core.record import record
from windlass.core.unserved import UnservedJobs, find_unserved
from windlass.store.calls.overview import MOST_WORKERS
from windlass.web.snapshot import Snapshot
from windlass.web.templates import name_in_path

SILENCE_FIELDS: tuple[Mapping[str, Any], ...] = (
    {"name": "for", "label": "For how long, as in 2h", "value": "1h", "maxLength": 100, "required": True},
    {"name": "reason", "label": "Why", "maxLength": 500, "required": True},
)
"""The fields of a silence."""


@record(kw_only=True)
class Remedy:
    """A request of the API that helps."""

    label: str
    url: str
    done: str
    undo: str | None = None
    body: Mapping[str, Any] | None = None
    fields: Sequence[Mapping[str, Any]] | None = None


@record(kw_only=True)
class Trouble:
    """One thing that is wrong; `command` is shown where no request helps."""

    text: str
    path: str
    is_critical: bool = False
    remedy: Remedy | None = None
    command: str = ""


def troubles(seen: Snapshot) -> list[Trouble]:
    """List what is wrong: the alerts, and what holds jobs back already although no alert is raised yet."""
    known = {(one.alert.rule, one.alert.subject) for one in seen.alerts}
    found = [*_unserved(seen, known), *map(_of_alert, seen.alerts), *_breakers(seen, known), *_paused(seen.lanes)]
    return sorted(found, key=lambda one: not one.is_critical)


def _of_alert(shown: ShownAlert) -> Trouble:
    alert = shown.alert
    is_critical = shown.severity is AlertSeverity.CRITICAL
    if alert.rule == "breaker":
        return Trouble(text=alert.message, path=shown.path, is_critical=is_critical, remedy=_reset(alert.subject))
    url = f"/api/v1/alerts/{name_in_path(alert.rule)}/silence"
    silence = Remedy(label="Silence …", url=url, done="It is silenced.", body={"subject": alert.subject}, fields=SILENCE_FIELDS)
    # That alerts are not evaluated is no alert that could be silenced.
    return Trouble(
        text=alert.message, path=shown.path, is_critical=is_critical, remedy=silence if alert.id else None, command=shown.command
    )


def _reset(breaker: str) -> Remedy:
    return Remedy(label="Reset", url=f"/api/v1/breakers/{name_in_path(breaker)}/reset", done="It is closed.")


def _unserved(seen: Snapshot, known: set[tuple[str, str]]) -> Iterator[Trouble]:
    # With more workers than were read it cannot be computed.
    if len(seen.workers) >= MOST_WORKERS:
        return
    found = list(find_unserved(seen.counts, seen.workers))
    if found and not seen.workers:
        jobs = sum(one.jobs for one in found)
        text = f"{jobs:,} waiting, and no worker is online"
        yield Trouble(text=text, path="/jobs?state=pending", is_critical=True, command="windlass worker module:app")
        return
    for one in _added(found):
        if ("unserved", f"{one.task} in {one.lane}") not in known:
            why = f"no worker serves lane {one.lane}" if one.has_code else "no worker has its code"
            yield Trouble(
                text=f"{one.task}: {one.jobs:,} waiting, {why}",
                path=f"/jobs?state=pending&lane={name_in_path(one.lane)}&task={name_in_path(one.task)}",
                is_critical=True,
                command=f"windlass worker module:app --pools '{one.lane}=2,*=5'"
                if one.has_code
                else "windlass worker module:app",
            )


def _added(found: Sequence[UnservedJobs]) -> Iterator[UnservedJobs]:
    jobs: Counter[tuple[str, str, bool]] = Counter()
    for one in found:
        jobs[one.task, one.lane, one.has_code] += one.jobs
    return (UnservedJobs(task, lane, number, has_code) for (task, lane, has_code), number in jobs.most_common())


def _breakers(seen: Snapshot, known: set[tuple[str, str]]) -> Iterator[Trouble]:
    for one in seen.breakers:
        if ("breaker", one.name) not in known:
            state = one.state.value.replace("_", " ")
            yield Trouble(text=f"breaker {one.name} is {state}: its tasks wait", path="/breakers", remedy=_reset(one.name))


def _paused(lanes: Sequence[Lane]) -> Iterator[Trouble]:
    in_all = sum(lane.counts.get(JobState.PENDING, 0) for lane in lanes)
    for lane in lanes:
        waiting = in_all if lane.name == ALL_LANES else lane.counts.get(JobState.PENDING, 0)
        if lane.paused_at is None or not waiting:
            continue
        what, query = ("every lane", "") if lane.name == ALL_LANES else (f"lane {lane.name}", f"&lane={name_in_path(lane.name)}")
        url = f"/api/v1/lanes/{name_in_path(lane.name)}"
        resume = Remedy(label="Resume", url=f"{url}/resume", done="The lane is open.", undo=f"{url}/pause")
        yield Trouble(text=f"{what} is paused, {waiting:,} waiting", path=f"/jobs?state=pending{query}", remedy=resume)
