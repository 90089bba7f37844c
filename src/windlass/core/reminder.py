"""Reminders: mails that are to be sent once a time has come."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from windlass.core.checks import check_instant
from windlass.core.payload import JsonText, decode_object, encode_object
from windlass.core.record import record


@record
class NewReminder:
    """A reminder to keep; `mail` is the payload of an `email` job."""

    due_at: datetime
    mail: dict[str, Any]

    def __post_init__(self) -> None:
        """Refuse what could never be sent."""
        check_instant("due_at", self.due_at)
        self.encode_mail()

    def encode_mail(self) -> JsonText:
        """Write the mail as it is stored."""
        return encode_object(self.mail, field="mail")


@record
class Reminder:
    """A reminder as it is kept."""

    id: int
    due_at: datetime
    mail_json: str
    job_id: int | None
    """The job that sends it, once there is one; it may be pruned long before."""
    enqueued_at: datetime | None
    created_at: datetime

    @property
    def mail(self) -> dict[str, Any]:
        """The payload of its `email` job, read anew each time."""
        return decode_object(self.mail_json, field="mail")
