"""Reminders: mails that wait for their time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB
from windlass.core.payload import decode_object
from windlass.core.record import shaped
from windlass.core.reminder import NewReminder, Reminder
from windlass.web.fields import Body, Instant, Limit, Listed, capped
from windlass.web.job_shape import AnswerRules, answer_rules
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer

_TASK = "email"
ReminderId = Annotated[int, Path(ge=1, le=MAX_JOB)]


class ReminderIn(Body):
    """A mail and its time."""

    due_at: Instant
    mail: dict[str, Any]
    """The payload of an `email` job."""


@answer
class ReminderOut:
    """A reminder as it is kept."""

    id: int
    due_at: datetime
    mail: dict[str, Any]
    job_id: int | None
    """The job that sends it; null while it waits."""
    enqueued_at: datetime | None
    created_at: datetime


class RemindersOut(Listed):
    """Reminders by number."""

    reminders: list[ReminderOut]
    next: int | None
    """Send it as `after` for the next page."""


def _out(reminder: Reminder, rules: AnswerRules) -> ReminderOut:
    return shaped(ReminderOut, reminder, mail=rules.hide(reminder.mail))


async def create_reminder(request: Request, body: ReminderIn) -> ReminderOut:
    """Keep a mail until it is due; `produce-reminders` sends it then."""
    app = context_of(request).app
    # What is wrong with the mail is answered now, and not when it is due.
    job = await app.described(_TASK, body.mail, {})
    kept = await operator_of(request).reminders.add(NewReminder(body.due_at, decode_object(job.payload)))
    return _out(kept, answer_rules(request))


async def list_reminders(
    request: Request, after: Annotated[int, Query(ge=0, le=MAX_JOB)] = 0, limit: Limit = 100
) -> RemindersOut:
    """List the reminders, those that were sent among them for as long as they are kept."""
    reminders = reader_of(request).reminders
    found = await reminders.list(after=after, limit=capped(limit))
    counted = await reminders.count()
    last = found[-1].id if len(found) == capped(limit) else None
    rules = answer_rules(request)
    shown = [_out(one, rules) for one in found]
    return RemindersOut(reminders=shown, total=counted.total, is_total_exact=counted.is_exact, next=last)


async def get_reminder(request: Request, id: ReminderId) -> ReminderOut:  # noqa: A002 - the path's name
    """Read one reminder."""
    return _out(await context_of(request).app.reminders.get(id), answer_rules(request))


async def delete_reminder(request: Request, id: ReminderId) -> ReminderOut:  # noqa: A002 - the path's name
    """Delete a reminder; one whose `job_id` is not null was already being sent."""
    return _out(await operator_of(request).reminders.delete(id), answer_rules(request))


ROUTES = (
    Route("GET", "/api/v1/reminders", Role.VIEWER, list_reminders, is_costly=True),
    Route("POST", "/api/v1/reminders", Role.PRODUCER, create_reminder, 201),
    Route("GET", "/api/v1/reminders/{id}", Role.VIEWER, get_reminder, errors=(404,)),
    Route("DELETE", "/api/v1/reminders/{id}", Role.OPERATOR, delete_reminder, errors=(404,)),
)
