"""What operators look at and change, as the HTTP API shows it: lanes, tasks, breakers, dead letters, alerts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from windlass.core.alert_rules import AlertSeverity
from windlass.core.breaker import BreakerReason, BreakerState
from windlass.core.canary import CanaryState
from windlass.core.job import JobState
from windlass.core.letter_page import LetterStatus
from windlass.wire import answer


@answer
class GateOut:
    """A lane or task as the request left it."""

    name: str
    is_paused: bool
    paused_by: str | None = None
    is_changed: bool
    """False when it was so before."""


@answer
class DrainOut:
    """A paused lane or task and what still runs in it; ask again until it is done."""

    name: str
    running: int
    is_settled: bool
    """Otherwise a claim may still be under way."""
    is_done: bool


@answer
class LaneOut:
    """A lane with its jobs by state."""

    name: str
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    counts: Mapping[JobState, int]
    """States without jobs are left out."""


@answer
class TaskOut:
    """A task that some process declared, or that was paused before any did."""

    name: str
    lane: str
    options: Mapping[str, Any]
    breaker: str | None = None
    is_declared: bool
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    first_seen_at: datetime
    seen_at: datetime


@answer
class BreakerOut:
    """A breaker that has left closed at some time."""

    name: str
    state: BreakerState
    failures: int
    """What it opened for; probes that failed are added until it closes."""
    successes: int
    """How often a probe has closed it."""
    threshold: int
    """How many failures in a row open it."""
    open_seconds: float
    """How long it stays open before it is tried again."""
    last_failure_at: datetime | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """When it is tried again; null while it is open for good."""
    half_opened_at: datetime | None = None
    probe_job_id: int | None = None
    """The job it is being tried with."""
    is_forced: bool
    """Whether an operator opened it."""
    updated_at: datetime


@answer
class BreakerEventOut:
    """One change of a breaker."""

    id: int
    state: BreakerState
    reason: BreakerReason
    job_id: int | None = None
    at: datetime


@answer
class NoteOut:
    """A note of an operator on a dead letter."""

    at: datetime
    by: str
    text: str


@answer
class CanaryOut:
    """A requeue of many letters, of which the first are tried before the others."""

    id: int
    state: CanaryState
    task: str | None = None
    fingerprint: str | None = None
    size: int
    """How many go first."""
    succeeded: int
    """How many of those have succeeded."""
    requeued: int
    """How many letters were brought back in all."""
    refused: int
    reason: str | None = None
    """Why it stopped."""
    jobs: tuple[int, ...] = ()
    """The numbers of the jobs that go first."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None


@answer
class LetterOut:
    """The record of a job that failed for good, without the job itself."""

    id: int
    job_id: int
    """The number of the job that died."""
    task: str
    lane: str
    correlation_id: str | None = None
    error_message: str
    fingerprint: str
    """The same for deaths of the same kind."""
    deaths: int
    """How often the job has died since the letter was opened; a schedule that goes on may die again."""
    first_died_at: datetime
    died_at: datetime
    status: LetterStatus
    acknowledged: bool
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    note: str | None = None
    """What was written with the acknowledgement."""
    closed_at: datetime | None = None
    closed_reason: str | None = None
    edited_by: str | None = None
    """Who changed the payload that its job comes back with."""
    edited_at: datetime | None = None
    version: str | None = None
    """The version of the application that the first death of this kind came from, if its worker named one."""


@answer
class GroupOut:
    """Deaths of the same kind, with the newest as an example."""

    fingerprint: str
    letters: int
    deaths: int
    last_died_at: datetime
    newest_id: int
    task: str
    error_message: str
    in_hour: int
    """How many of these letters died within the last hour."""
    in_day: int
    in_week: int
    first_died_at: datetime | None = None
    """When the first letter of this kind that is still kept was written."""
    version: str | None = None
    """The version of the application that the first one came from."""
    is_new: bool
    """Whether it first appeared with the newest version of the application."""


@answer
class CountsOut:
    """How many letters died lately, and how many were not dealt with."""

    hour: int
    day: int
    week: int
    open: int
    is_exact: bool
    """Otherwise there are at least so many: only the newest 5,000 were looked at, and 10,000 that are open."""


@answer
class SilenceOut:
    """No notice is sent of a rule, or of one of its subjects, for a while."""

    rule: str
    subject: str
    """Empty: of every one."""
    until: datetime
    reason: str
    created_by: str | None = None
    created_at: datetime


@answer
class AlertOut:
    """An alert with what helps."""

    id: int
    """0: that alerts are not evaluated, which only a reader can see."""
    rule: str
    subject: str
    """What it is about, such as a lane; empty: the whole queue."""
    severity: AlertSeverity
    message: str
    value: float
    """By the unit of its rule; durations are seconds."""
    since: datetime
    """When the condition began to hold."""
    raised_at: datetime | None = None
    seen_at: datetime
    cleared_at: datetime | None = None
    remedy: str
    command: str
    path: str
    """The page of the dashboard that helps."""
    silence: SilenceOut | None = None
