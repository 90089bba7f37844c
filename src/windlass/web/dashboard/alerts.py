"""The alerts: what is wrong now, what is silenced, and what is over."""

from __future__ import annotations

from fastapi import Request, Response

from windlass.core.access import Role
from windlass.core.alert_rules import AlertSeverity
from windlass.core.alerts import ShownAlert
from windlass.web.dashboard.frame import draw
from windlass.web.dashboard.health import SILENCE_FIELDS
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_PAST = 50


def colour(shown: ShownAlert) -> str:
    """Return the state whose colour an alert has."""
    return "failed" if shown.severity is AlertSeverity.CRITICAL else "retry"


async def show_alerts(request: Request) -> Response:
    """Show the alerts."""
    alerts = reader_of(request).alerts
    seen = await alerts.board()
    past = await alerts.history(limit=_PAST)
    return draw(
        request,
        "alerts.html",
        seen.at,
        here="/alerts",
        title="Alerts",
        seen=seen,
        past=past,
        colour=colour,
        silence_fields=SILENCE_FIELDS,
    )


ROUTES = (Route("GET", "/alerts", Role.VIEWER, show_alerts, is_page=True, is_costly=True),)
