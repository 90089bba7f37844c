"""Mails, webhooks, reminders and HTTP calls to other systems (seed 003)."""

from __future__ import annotations

from windlass.app import Windlass
from windlass.packs.notify import cleanup, email, integration, reminders, webhook


def install(app: Windlass) -> None:
    """Declare the tasks, under the seed's names and in its fast lane; an application's own task of such a name stays."""
    for part in (email, webhook, integration, cleanup, reminders):
        if part.TASK not in app.tasks:
            part.install(app)
