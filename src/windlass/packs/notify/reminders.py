"""Turns reminders that are due into mails."""

from __future__ import annotations

from windlass.app import Windlass
from windlass.client.options import job_fields
from windlass.client.task import descended
from windlass.core.job import NewJob
from windlass.core.reminder import Reminder
from windlass.packs.notify import email
from windlass.packs.notify.fields import LANE, MAX_ATTEMPTS, RETRY

TASK = "produce-reminders"
DAILY = "0 6 * * *"


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, lane=LANE, cron=DAILY)
    async def produce_reminders() -> dict[str, int]:
        """Enqueue one mail for each reminder that is due and has none yet."""
        store = await app.store()
        made = 0
        while batch := await store.reminders.enqueue_due(mail_job):
            made += len(batch)
        return {"enqueued": made}


def mail_job(reminder: Reminder) -> NewJob:
    """Describe the mail of a reminder; what is wrong with it is found when it is sent, and holds up no other."""
    options = job_fields({"lane": LANE, "retry": RETRY, "max_attempts": MAX_ATTEMPTS, "timeout": "2m"})
    subject = f"reminder {reminder.id}"
    return NewJob(**descended({"task": email.TASK, "payload": reminder.mail, "subject": subject, "created_by": TASK, **options}))
