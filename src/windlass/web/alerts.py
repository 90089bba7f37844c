"""Alerts: what is wrong, since when, and what helps; and silences."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import Field, StringConstraints

from windlass.core.access import Role
from windlass.core.alert_rules import AlertSeverity, Unit
from windlass.core.alerts import ShownAlert
from windlass.core.record import shaped
from windlass.store.calls.alerts import MAX_HISTORY
from windlass.web.errors import Refusal
from windlass.web.fields import LINE, Body, Listed, PathName
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer
from windlass.wire.operations import AlertOut, SilenceOut

_MOST = 500
Subject = Annotated[str, Query(max_length=_MOST, description="Only this one; left out, every one.")]


class AlertsOut(Listed):
    """The alerts of one moment, worst first."""

    at: datetime
    alerts: list[AlertOut]
    """Raised, and not silenced."""
    silenced: list[AlertOut]
    silences: list[SilenceOut]


class AlertHistoryOut(Listed):
    """Alerts that were cleared, newest first."""

    alerts: list[AlertOut]


@answer
class AlertRuleOut:
    """A rule as this server's settings have it."""

    name: str
    watches: str
    subject: str
    unit: Unit
    threshold: float
    for_seconds: float
    """How long the condition must hold."""
    severity: AlertSeverity
    is_on: bool
    remedy: str


class AlertRulesOut(Listed):
    """Every rule."""

    rules: list[AlertRuleOut]


class SilenceIn(Body):
    """For how long, and why."""

    for_: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=100)] | Annotated[float, Field(gt=0)],
        Field(alias="for", description="Seconds, or a duration such as `90m` or `2d`; at most 30 days."),
    ]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=_MOST, pattern=LINE)]
    subject: Annotated[str, StringConstraints(max_length=_MOST)] = ""
    """Only this one, such as a lane; empty: every one."""


def _out(shown: ShownAlert) -> AlertOut:
    silence = None if shown.silence is None else shaped(SilenceOut, shown.silence)
    return shaped(
        AlertOut,
        shown.alert,
        severity=shown.severity,
        remedy=shown.remedy,
        command=shown.command,
        path=shown.path,
        silence=silence,
    )


async def list_alerts(request: Request) -> AlertsOut:
    """List the alerts that are raised, worst first, and what is silenced."""
    seen = await context_of(request).app.alerts.board()
    return AlertsOut(
        at=seen.at,
        alerts=[_out(one) for one in seen.open],
        silenced=[_out(one) for one in seen.silenced],
        silences=[shaped(SilenceOut, one) for one in seen.silences],
        total=len(seen.open),
    )


async def list_alert_history(
    request: Request, limit: Annotated[int, Query(ge=1, le=MAX_HISTORY, description="How many at most.")] = 100
) -> AlertHistoryOut:
    """List the alerts that were cleared within 90 days, newest first."""
    found = [_out(one) for one in await reader_of(request).alerts.history(limit=limit)]
    return AlertHistoryOut(alerts=found, total=len(found), is_total_exact=len(found) < limit)


async def list_alert_rules(request: Request) -> AlertRulesOut:
    """List the rules with the thresholds of this server's settings."""
    known = context_of(request).app.settings.alert_rules.values()
    rules = [shaped(AlertRuleOut, one, for_seconds=one.hold.total_seconds()) for one in known]
    return AlertRulesOut(rules=rules, total=len(rules))


async def silence_alerts(request: Request, rule: PathName, body: SilenceIn) -> SilenceOut:
    """Send no notice of a rule, or of one of its subjects, for a while; a silence that is there is replaced."""
    alerts = operator_of(request).alerts
    return shaped(SilenceOut, await alerts.silence(rule, body.for_, reason=body.reason, subject=body.subject))


async def unsilence_alerts(request: Request, rule: PathName, subject: Subject = "") -> dict[str, bool]:
    """End a silence before its time."""
    if not await operator_of(request).alerts.unsilence(rule, subject=subject):
        about = f" of {subject!r}" if subject else ""
        raise Refusal(404, f"alert {rule!r}{about} is not silenced; GET /api/v1/alerts lists the silences")
    return {"ok": True}


_SILENCE = "/api/v1/alerts/{rule}/silence"
ROUTES = (
    Route("GET", "/api/v1/alerts", Role.VIEWER, list_alerts),
    Route("GET", "/api/v1/alerts/history", Role.VIEWER, list_alert_history, is_costly=True),
    Route("GET", "/api/v1/alerts/rules", Role.VIEWER, list_alert_rules),
    Route("POST", _SILENCE, Role.OPERATOR, silence_alerts),
    Route("DELETE", _SILENCE, Role.OPERATOR, unsilence_alerts, errors=(404,)),
)
