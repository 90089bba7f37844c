"""Alerts as the HTTP API shows them."""

from __future__ import annotations

from datetime import datetime

from windlass.core.alert_rules import AlertSeverity
from windlass.wire import answer


@answer
class SilenceOut:
    """Nobody is notified of a rule, or of one of its subjects, for a while."""

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
    """0: that nobody looks, which only who asks can see."""
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
