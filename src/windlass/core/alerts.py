"""What happens to alerts when their conditions begin, last and end: decisions only, no database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from windlass.core.alert_rules import RULES, AlertRule, AlertSeverity
from windlass.core.alert_signs import CHORE, Sign, long
from windlass.core.chore import Chore
from windlass.core.record import record

MOST_SUBJECTS = 50
"""How many alerts one rule has at a time: names come from enqueuers, and there may be any number."""
EVERY = timedelta(seconds=15)
STALE = timedelta(minutes=2)
"""When nothing has been looked at for so long, readers of the alerts see that."""
_REFRESH = timedelta(minutes=1)


@record
class Alert:
    """A condition from when it began to hold; it is an alert once it is raised."""

    id: int
    rule: str
    subject: str
    message: str
    value: float
    since: datetime
    raised_at: datetime | None
    seen_at: datetime
    calm_since: datetime | None
    """Since when the condition does not hold any more; cleared when that has lasted."""
    cleared_at: datetime | None


@record
class Silence:
    """No notice is sent of a rule, or of one of its subjects, for a while."""

    rule: str
    subject: str
    """Empty: of every one."""
    until: datetime
    reason: str
    created_by: str | None
    created_at: datetime

    def covers(self, alert: Alert) -> bool:
        """Whether it is about this alert."""
        return self.rule == alert.rule and self.subject in {"", alert.subject}


@record(kw_only=True)
class ShownAlert:
    """An alert with what helps."""

    alert: Alert
    severity: AlertSeverity
    remedy: str
    command: str
    path: str
    silence: Silence | None = None


@record(kw_only=True)
class AlertBoard:
    """The alerts of one moment, worst first."""

    at: datetime
    open: Sequence[ShownAlert]
    """Raised, not cleared and not silenced."""
    silenced: Sequence[ShownAlert]
    silences: Sequence[Silence]


class MoveKind(StrEnum):
    """What happens to an alert."""

    BEGIN = "begin"
    """The condition holds, but not yet for long enough."""
    RAISE = "raise"
    REFRESH = "refresh"
    CALM = "calm"
    CLEAR = "clear"
    FORGET = "forget"
    """The condition ended before it was an alert."""


class AlertMove(NamedTuple):
    """A change of an alert; one that begins has no number yet."""

    kind: MoveKind
    alert_id: int | None
    rule: str
    subject: str
    value: float
    message: str


class Notice(NamedTuple):
    """What is sent out when an alert is raised or cleared."""

    is_raised: bool
    at: datetime
    alert: ShownAlert


def step(known: Sequence[Alert], found: Sequence[Sign], now: datetime, rules: Mapping[str, AlertRule]) -> list[AlertMove]:
    """Decide what happens to every open alert, and which are new."""
    signs_by_place = {(sign.rule, sign.subject): sign for sign in found}
    moves = [move for alert in known if (move := _move(alert, signs_by_place, now, rules)) is not None]
    room = Counter(alert.rule for alert in known)
    places = {(alert.rule, alert.subject) for alert in known}
    for sign in found:
        if not sign.is_over or (sign.rule, sign.subject) in places or room[sign.rule] >= MOST_SUBJECTS:
            continue
        room[sign.rule] += 1
        kind = MoveKind.BEGIN if rules[sign.rule].hold else MoveKind.RAISE
        moves.append(AlertMove(kind, None, sign.rule, sign.subject, sign.value, sign.message))
    return moves


def _move(alert: Alert, found: Mapping[tuple[str, str], Sign], now: datetime, rules: Mapping[str, AlertRule]) -> AlertMove | None:
    sign, rule = found.get((alert.rule, alert.subject)), rules.get(alert.rule)
    kind = _kind(alert, sign, now, rule)
    if kind is None:
        return None
    value, message = (alert.value, alert.message) if sign is None else (sign.value, sign.message)
    return AlertMove(kind, alert.id, alert.rule, alert.subject, value, message)


def _kind(alert: Alert, sign: Sign | None, now: datetime, rule: AlertRule | None) -> MoveKind | None:
    if alert.raised_at is None:
        if sign is None or rule is None or not sign.is_over:
            return MoveKind.FORGET
        return MoveKind.RAISE if now - alert.since >= rule.hold else None
    if sign is not None:
        is_stale = alert.calm_since is not None or now - alert.seen_at >= _REFRESH
        return MoveKind.REFRESH if is_stale else None
    # A rule that is off, or that a newer version had, clears at once.
    if rule is None or not rule.is_on:
        return MoveKind.CLEAR
    if alert.calm_since is None:
        return MoveKind.CALM
    return MoveKind.CLEAR if now - alert.calm_since >= rule.calm else None


def show(alert: Alert, silences: Iterable[Silence] = ()) -> ShownAlert:
    """Add what helps, and the silence that covers it, if any."""
    rule = RULES.get(alert.rule)
    silence = next((one for one in silences if one.covers(alert)), None)
    if rule is None:
        # Another version of the program raised it.
        return ShownAlert(
            alert=alert, severity=AlertSeverity.WARNING, remedy="", command="windlass alerts", path="/alerts", silence=silence
        )
    return ShownAlert(
        alert=alert,
        severity=rule.severity,
        remedy=rule.remedy,
        command=rule.helps(alert.subject),
        path=rule.page(alert.subject),
        silence=silence,
    )


def board(at: datetime, raised: Iterable[Alert], silences: Sequence[Silence], chores: Iterable[Chore]) -> AlertBoard:
    """Sort the raised alerts, worst first; that alerts are not evaluated any more is an alert that only a reader can see."""
    asleep = _nobody_looks(at, chores)
    shown = [show(alert, silences) for alert in (*raised, *([] if asleep is None else [asleep]))]
    shown.sort(key=lambda one: (one.severity is not AlertSeverity.CRITICAL, one.alert.raised_at, one.alert.id))
    return AlertBoard(
        at=at,
        open=[one for one in shown if one.silence is None],
        silenced=[one for one in shown if one.silence is not None],
        silences=silences,
    )


def _nobody_looks(at: datetime, chores: Iterable[Chore]) -> Alert | None:
    looks = next((one for one in chores if one.name == CHORE), None)
    if looks is None:
        return None
    if looks.paused_at is not None:
        message, since = "no alert is raised or cleared: chore alerts is paused", looks.paused_at
    elif looks.due_at is not None and at - looks.due_at > STALE:
        message, since = f"upkeep does not run: nothing was looked at for {long(at - looks.due_at)}", looks.due_at
    else:
        return None
    return Alert(0, "upkeep", CHORE, message, max(0.0, (at - since).total_seconds()), since, since, at, None, None)
