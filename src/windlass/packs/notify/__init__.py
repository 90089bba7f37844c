"""Mails, webhooks, reminders and HTTP calls to other systems."""

from __future__ import annotations

from windlass.app import Windlass
from windlass.packs.notify import cleanup, email, integration, reminders, webhook


def install(app: Windlass) -> None:
    """Declare the tasks, in the fast lane; an application's own task of such a name stays."""
    for part in (email, webhook, integration, cleanup, reminders):
        if part.TASK not in app.tasks:
            part.install(app)
