"""What is sent out when an alert is raised or cleared, as payloads of the tasks `webhook` and `email`."""

from __future__ import annotations

from typing import Any

from windlass.core.alerts import Notice

WEBHOOK_TASK = "webhook"
EMAIL_TASK = "email"
LANE = "fast"
"""Of both tasks, where this process has not their code."""
_MOST_SUBJECT = 150


def webhook(notice: Notice, url: str) -> dict[str, Any]:
    """Describe a webhook: its type is `windlass.alert.raised` or `windlass.alert.cleared`."""
    return {"url": url, "event": f"windlass.alert.{_verb(notice)}", "data": _data(notice)}


def email(notice: Notice, to: str) -> dict[str, Any]:
    """Describe a mail."""
    alert = notice.alert.alert
    lines = [
        f"{alert.message}.",
        "",
        f"Alert: {alert.rule}{f' ({alert.subject})' if alert.subject else ''}, {notice.alert.severity}",
        f"Since: {alert.since:%Y-%m-%d %H:%M:%S} UTC",
    ]
    if notice.is_raised:
        lines += [f"What helps: {notice.alert.remedy}", f"Command: {notice.alert.command}", f"Page: {notice.alert.path}"]
    # Names of others may have any character in them.
    printable = "".join(one if one.isprintable() else " " for one in alert.message)
    subject = f"[windlass] {_verb(notice)}: {printable}"
    return {"to": to, "subject": subject[:_MOST_SUBJECT], "text": "\n".join(lines) + "\n"}


def _verb(notice: Notice) -> str:
    return "raised" if notice.is_raised else "cleared"


def _data(notice: Notice) -> dict[str, Any]:
    shown, alert = notice.alert, notice.alert.alert
    return {
        "id": alert.id,
        "rule": alert.rule,
        "subject": alert.subject,
        "severity": shown.severity.value,
        "message": alert.message,
        "value": alert.value,
        "since": alert.since.isoformat(),
        "at": notice.at.isoformat(),
        "remedy": shown.remedy,
        "command": shown.command,
        "path": shown.path,
    }
