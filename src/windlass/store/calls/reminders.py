"""Reminders: kept until their time, and turned into jobs exactly once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_wait
from windlass.core.ids import MAX_JOB
from windlass.core.job import NewJob
from windlass.core.page import CappedCount
from windlass.core.payload import encode_object
from windlass.core.reminder import NewReminder, Reminder
from windlass.core.topic import Topic
from windlass.errors import ReminderNotFound
from windlass.store import batches
from windlass.store.calls import work
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.reads import MAX_LIST, count_capped
from windlass.store.rows import SHAPES, Row, Shape

_REMINDER = Shape.of(Reminder)
SHAPES |= dict.fromkeys(("add_reminder", "get_reminder", "list_reminders", "due_reminders", "delete_reminder"), _REMINDER)


def add(reminder: NewReminder) -> Call[Reminder]:
    """Keep a reminder."""
    params = {"due_at": reminder.due_at, "mail": reminder.encode_mail()}
    return single("add_reminder", params, lambda found: _reminders(found)[0], deed=_was_added)


def get(reminder_id: int) -> Call[Reminder]:
    """Read a reminder; raises ReminderNotFound."""
    return _one("get_reminder", reminder_id, is_read=True)


def delete(reminder_id: int) -> Call[Reminder]:
    """Delete a reminder and return it as it was; raises ReminderNotFound. A job that was made of it stays."""
    return replace(_one("delete_reminder", reminder_id), deed=_was_deleted)


def _one(query: str, reminder_id: int, *, is_read: bool = False) -> Call[Reminder]:
    check_range("reminder_id", reminder_id, 1, MAX_JOB)

    def decode(found: Sequence[Row]) -> Reminder:
        if not found:
            raise ReminderNotFound(reminder_id)
        return _reminders(found)[0]

    return single(query, {"reminder_id": reminder_id}, decode, is_read=is_read)


def list_reminders(*, after: int = 0, limit: int = MAX_LIST) -> Call[list[Reminder]]:
    """Read reminders in the order of their numbers, page by page."""
    check_range("after", after, 0, MAX_JOB)
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_reminders", {"after_reminder": after, "limit": limit}, _reminders, is_read=True)


def enqueue_due(make: Callable[[Reminder], NewJob], *, limit: int = MAX_LIST) -> Call[list[Reminder]]:
    """Enqueue one job for each reminder that is due and has none, and note it in the same transaction."""
    check_range("limit", limit, 1, MAX_LIST)

    def steps(means: Means) -> Steps[list[Reminder]]:
        due = _reminders((yield Step("due_reminders", {"limit": limit})))
        if not due:
            return []
        [[moment]] = yield Step("clock", {})
        enqueued = yield from work.enqueue([make(reminder) for reminder in due]).steps(means)
        made = [replace(old, job_id=new.id, enqueued_at=moment) for old, new in zip(due, enqueued, strict=True)]
        marks = batches.array(f'{{"id":{reminder.id},"job_id":{reminder.job_id}}}' for reminder in made)
        yield Step("mark_reminders", {"reminders": marks, "now": moment})
        return made

    return Call(steps, wakes=_woken)


def _woken(made: list[Reminder]) -> Collection[Topic]:
    return {Topic.WORK} if made else ()


def prune(keep: timedelta, *, limit: int = 1000) -> Call[int]:
    """Delete reminders whose job was made long ago; returns how many."""
    check_wait("keep", keep, least=timedelta())
    check_range("limit", limit, 1, 10_000)
    return single("prune_reminders", {"keep_for": keep, "limit": limit}, len)


def count() -> Call[CappedCount]:
    """Count them, up to a bound."""
    return count_capped("count_reminders")


def _reminders(rows: Sequence[Row]) -> list[Reminder]:
    return [Reminder(*row) for row in rows]


def _was_added(reminder: Reminder) -> Deed:
    """Describe a new reminder."""
    return Deed("add reminder", f"reminder:{reminder.id}", "done", encode_object({"due_at": reminder.due_at.isoformat()}))


def _was_deleted(reminder: Reminder) -> Deed:
    """Describe the deletion of a reminder."""
    return Deed("delete reminder", f"reminder:{reminder.id}", "done", encode_object({"job_id": reminder.job_id}))
