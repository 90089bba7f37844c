"""Turns reminders that are due into mails."""

from __future__ import annotations

from collections.abc import Callable

from windlass.app import Windlass
from windlass.client.options import job_fields
from windlass.client.task import descended
from windlass.core.job import NewJob
from windlass.core.reminder import Reminder
from windlass.packs.notify import email
from windlass.packs.notify.fields import LANE, MAX_ATTEMPTS, RETRY, TIMEOUT

TASK = "produce-reminders"
DAILY = "0 6 * * *"
# A mail may have a mebibyte, and a batch is one transaction, which blocks other writers.
_BATCH = 50


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, lane=LANE, cron=DAILY)
    async def produce_reminders() -> dict[str, int]:
        """Enqueue one mail for each reminder that is due and has none yet."""
        store = await app.store()
        make = mail_maker()
        made = 0
        while batch := await store.reminders.enqueue_due(make, limit=_BATCH):
            made += len(batch)
        return {"enqueued": made}


def mail_maker() -> Callable[[Reminder], NewJob]:
    """Describe the mails of reminders, as children of the job that runs here.

    What is wrong with a mail is found when it is sent, and holds up no other.
    """
    options = job_fields({"lane": LANE, "retry": RETRY, "max_attempts": MAX_ATTEMPTS, "timeout": TIMEOUT})
    # Asked for now: a store may call back from a thread, where there is no running job.
    fields = descended({"task": email.TASK, "created_by": TASK, **options})

    def make(reminder: Reminder) -> NewJob:
        return NewJob(payload=reminder.mail_json, subject=f"reminder {reminder.id}", **fields)

    return make
