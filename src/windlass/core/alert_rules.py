"""The rules that raise alerts: what each watches, from when on it counts, and what helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from urllib.parse import quote

from windlass.core.durations import format_duration, parse_duration
from windlass.core.record import record
from windlass.errors import InvalidInput, nearest, shown

_OFF = "off"
_FORM = "write rule=threshold, rule=threshold,for=duration or rule=off, with ; between rules, as in pending=200,for=10m;depth=off"
_LARGEST = 1e12
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_MINUTE = timedelta(minutes=1)
_NOW = timedelta()
WINDOW = timedelta(minutes=10)
"""How far back rates look."""
BEFORE = timedelta(hours=1)
"""How long the time before the window is that durations are compared with."""
LEAST_RUNS = 20
"""With fewer runs in the window a rate means nothing."""
LEAST_SLOWER = timedelta(milliseconds=100)
"""By how much a task's average duration must have grown to be worth an alert."""
IN_LANE = " in "
"""Stands between a task and its lane in a subject."""
GONE_FOR = timedelta(hours=1)
"""How long a worker that ended without reporting it raises an alert."""


class AlertSeverity(StrEnum):
    """How urgent the alert is."""

    CRITICAL = "critical"
    """Work is lost, late or stands still."""
    WARNING = "warning"
    """It will become critical if it is left alone."""


class Unit(StrEnum):
    """What a threshold counts."""

    NUMBER = "number"
    SHARE = "share"
    """From 0 to 1."""
    DURATION = "duration"
    NONE = "none"
    """The condition holds or does not."""


@record(kw_only=True)
class AlertRule:
    """When an alert is raised and cleared.

    It is raised when the value has been beyond `threshold` for `hold`. It is cleared when the value has been back by `slack`, a
    part of the threshold, for `calm`: so a value that goes up and down around the threshold is one alert.
    """

    name: str
    watches: str
    subject: str
    """What it is raised for: one alert for each; empty for the whole queue."""
    unit: Unit
    threshold: float
    hold: timedelta = _NOW
    calm: timedelta = 2 * _MINUTE
    slack: float = 0.2
    is_floor: bool = False
    """Raised below the threshold, not above."""
    severity: AlertSeverity = AlertSeverity.WARNING
    remedy: str
    command: str
    """With `{subject}` in it, or `{task}` where the subject is a task in a lane."""
    path: str
    """The page of the dashboard, with `{subject}` in it."""
    is_on: bool = True

    def is_over(self, value: float) -> bool:
        """Whether a value is beyond the threshold."""
        return value < self.threshold if self.is_floor else value > self.threshold

    def is_warm(self, value: float) -> bool:
        """Whether a value is too near to the threshold to clear an alert."""
        if self.is_floor:
            return value < self.threshold + (1 - self.threshold) * self.slack
        return value > self.threshold * (1 - self.slack)

    def limit(self) -> str:
        """Write the threshold as the setting takes it."""
        match self.unit:
            case Unit.DURATION:
                return format_duration(timedelta(seconds=self.threshold))
            case Unit.SHARE:
                return f"{self.threshold * 100:g}%"
            case Unit.NONE:
                return ""
            case Unit.NUMBER:
                return f"{self.threshold:g}"

    def helps(self, subject: str) -> str:
        """Return the command that helps with one subject."""
        task = subject.rpartition(IN_LANE)[0] or subject
        return self.command.replace("{subject}", shlex.quote(subject)).replace("{task}", shlex.quote(task))

    def page(self, subject: str) -> str:
        """Return the page of the dashboard that shows one subject."""
        return self.path.replace("{subject}", quote(subject, safe=""))


_ALL = (
    AlertRule(
        name="pending",
        watches="pending jobs of a lane",
        subject="lane",
        unit=Unit.NUMBER,
        threshold=500,
        hold=5 * _MINUTE,
        remedy="Start more workers or slots for the lane, or find the task that fills it.",
        command="windlass explain --lane {subject}",
        path="/jobs?state=pending&lane={subject}",
    ),
    AlertRule(
        name="depth",
        watches="pending jobs of all lanes",
        subject="",
        unit=Unit.NUMBER,
        threshold=1000,
        remedy="Start more workers, or pause what enqueues.",
        command="windlass lanes",
        path="/lanes",
    ),
    AlertRule(
        name="error_rate",
        watches="failed runs of a task, of at least 20 within 10 minutes",
        subject="task",
        unit=Unit.SHARE,
        threshold=0.1,
        remedy="Read the newest errors; pause the task while its cause is fixed.",
        command="windlass explain --task {subject}",
        path="/jobs?task={subject}&state=failed",
    ),
    AlertRule(
        name="failed_rate",
        watches="jobs that failed for good, of at least 20 that ended within 10 minutes",
        subject="",
        unit=Unit.SHARE,
        threshold=0.1,
        severity=AlertSeverity.CRITICAL,
        remedy="See which errors the dead letters have in common, fix the cause, requeue them.",
        command="windlass dead list --status open",
        path="/dead",
    ),
    AlertRule(
        name="running",
        watches="how long a job has been running",
        subject="job",
        unit=Unit.DURATION,
        threshold=3600,
        remedy="See what it does; stop it if it hangs, or give its task a timeout.",
        command="windlass job {subject}",
        path="/jobs/{subject}",
    ),
    AlertRule(
        name="oldest_pending",
        watches="how long the oldest pending job of a lane has been due",
        subject="lane",
        unit=Unit.DURATION,
        threshold=3600,
        severity=AlertSeverity.CRITICAL,
        remedy="See whether the lane is paused, unserved or too busy.",
        command="windlass explain --lane {subject}",
        path="/jobs?state=pending&lane={subject}",
    ),
    AlertRule(
        name="fast_pool",
        watches="busy slots of lane fast",
        subject="",
        unit=Unit.SHARE,
        threshold=0.9,
        slack=0.1,
        hold=2 * _MINUTE,
        remedy="Give lane fast more slots (--pools), or move slow tasks to another lane.",
        command="windlass workers",
        path="/workers",
    ),
    AlertRule(
        name="breaker",
        watches="a circuit breaker that is open",
        subject="breaker",
        unit=Unit.NONE,
        threshold=0,
        calm=_MINUTE,
        severity=AlertSeverity.CRITICAL,
        remedy="Repair the service behind it; it closes by itself, or reset it.",
        command="windlass breakers reset {subject}",
        path="/breakers",
    ),
    AlertRule(
        name="schedule",
        watches="how overdue the most overdue schedule is",
        subject="",
        unit=Unit.DURATION,
        threshold=60,
        severity=AlertSeverity.CRITICAL,
        remedy="See that upkeep runs and that a worker has a free slot for it.",
        command="windlass schedules",
        path="/recurring",
    ),
    AlertRule(
        name="success_rate",
        watches="completed runs of a recurring job, of its last 10 (at least 5)",
        subject="recurring job",
        unit=Unit.SHARE,
        threshold=0.8,
        is_floor=True,
        remedy="Read its last errors.",
        command="windlass job {subject}",
        path="/jobs/{subject}",
    ),
    AlertRule(
        name="duration",
        watches="a task's average duration of 10 minutes against the hour before (20 runs each, 100 ms more), as a factor",
        subject="task",
        unit=Unit.NUMBER,
        threshold=2,
        remedy="See what changed: a deploy, a slow service, larger payloads.",
        command="windlass jobs --task {subject}",
        path="/jobs?task={subject}",
    ),
    AlertRule(
        name="lost_leases",
        watches="runs that ended with a lost lease within 10 minutes",
        subject="",
        unit=Unit.NUMBER,
        threshold=0,
        severity=AlertSeverity.CRITICAL,
        remedy="A worker died or blocked: read its log, and look for memory that ran out.",
        command="windlass workers",
        path="/workers",
    ),
    AlertRule(
        name="unserved",
        watches="pending jobs that no live worker takes",
        subject="task in lane",
        unit=Unit.NONE,
        threshold=0,
        hold=_MINUTE,
        calm=_MINUTE,
        severity=AlertSeverity.CRITICAL,
        remedy="Start a worker that has the task's code and a pool for the lane.",
        command="windlass explain --task {task}",
        path="/workers",
    ),
    AlertRule(
        name="upkeep",
        watches="how overdue a chore of the upkeep is",
        subject="chore",
        unit=Unit.DURATION,
        threshold=300,
        # Of a fleet that has just started, every chore is overdue.
        hold=_MINUTE,
        calm=_MINUTE,
        severity=AlertSeverity.CRITICAL,
        remedy="Start a server, a worker or `windlass upkeep`: each does the chores.",
        command="windlass chores",
        path="/workers",
    ),
    AlertRule(
        name="chore_failing",
        watches="a chore of the upkeep whose last round ended with an error",
        subject="chore",
        unit=Unit.NONE,
        threshold=0,
        hold=2 * _MINUTE,
        remedy="Read its error.",
        command="windlass chores",
        path="/workers",
    ),
    AlertRule(
        name="worker_gone",
        watches="how long a worker that did not stop in order has sent no heartbeat; for an hour",
        subject="worker",
        unit=Unit.DURATION,
        threshold=60,
        calm=_MINUTE,
        remedy="It was killed or lost its database: read its log, and start it again.",
        command="windlass workers",
        path="/workers",
    ),
    AlertRule(
        name="clock",
        watches="how far the database's clock is from that of the machine that looks",
        subject="",
        unit=Unit.DURATION,
        threshold=5,
        hold=_MINUTE,
        remedy="Let both machines keep their time with NTP.",
        command="timedatectl",
        path="/workers",
    ),
    AlertRule(
        name="disk",
        watches="how full the disk of the SQLite file is",
        subject="",
        unit=Unit.SHARE,
        threshold=0.95,
        slack=0.02,
        severity=AlertSeverity.CRITICAL,
        remedy="Free space, or keep less history (WINDLASS_KEEP_DAYS).",
        command="df -h",
        path="/",
    ),
)
RULES: Mapping[str, AlertRule] = {rule.name: rule for rule in _ALL}
"""Every rule as it is unless a setting differs, in the order of documents."""


def check_rule(name: str) -> AlertRule:
    """Return a rule; raises InvalidInput with the nearest name."""
    if name not in RULES:
        raise InvalidInput("rule", name, f"is no alert{nearest(name, RULES)}; known are {', '.join(RULES)}")
    return RULES[name]


def read_rules(text: str) -> Mapping[str, AlertRule]:
    """Return every rule with what a setting changes, as in `pending=200,for=10m;lost_leases=off`; raises InvalidInput."""
    changed: dict[str, AlertRule] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, sign, rest = (piece.strip() for piece in part.partition("="))
        if not sign or not rest:
            raise InvalidInput("alerts", part, _FORM)
        if name in changed:
            raise InvalidInput("alerts", part, f"names {name} twice")
        try:
            changed[name] = _changed(check_rule(name), rest.split(","))
        except InvalidInput as error:
            raise InvalidInput("alerts", part, f"{shown(error.value)}: {error.reason}") from None
    return {name: changed.get(name, rule) for name, rule in RULES.items()}


def _changed(rule: AlertRule, values: Iterable[str]) -> AlertRule:
    for value in map(str.strip, values):
        if value.partition("=")[0].strip() == "for" and "=" in value:
            rule = replace(rule, hold=parse_duration(value.partition("=")[2], field=f"{rule.name} for"))
        elif value == _OFF:
            rule = replace(rule, is_on=False)
        else:
            rule = replace(rule, threshold=_threshold(rule, value))
    return rule


def _threshold(rule: AlertRule, text: str) -> float:
    if rule.unit is Unit.NONE:
        raise InvalidInput(rule.name, text, f"{rule.name} has no threshold; write {rule.name}=off or {rule.name}=for=5m")
    if rule.unit is Unit.DURATION:
        return parse_duration(text, field=rule.name).total_seconds()
    percent = _PERCENT.fullmatch(text)
    try:
        number = float(percent[1]) / 100 if percent else float(text)
    except ValueError:
        raise InvalidInput(rule.name, text, "is neither a number nor off") from None
    most = 1.0 if rule.unit is Unit.SHARE else _LARGEST
    if not 0 <= number <= most:
        reason = "must be a share from 0 to 1, or a percentage" if rule.unit is Unit.SHARE else "must be a number from 0 on"
        raise InvalidInput(rule.name, text, reason)
    return number
