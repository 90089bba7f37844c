"""The reminders of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.audit import Actor
from windlass.core.job import NewJob
from windlass.core.reminder import NewReminder, Reminder
from windlass.core.tally import Tally
from windlass.store.calls import reminders, tally
from windlass.store.calls.audit import audited
from windlass.store.calls.reads import MAX_LIST

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlReminders:
    """Mails that are to be sent once a time has come."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def add(self, reminder: NewReminder) -> Reminder:
        """Keep a reminder."""
        return await self._db.run(audited(reminders.add(reminder), self._actor, reminders.was_added))

    async def get(self, reminder_id: int) -> Reminder:
        """Read a reminder; raises ReminderNotFound."""
        return await self._db.run(reminders.get(reminder_id))

    async def list(self, *, after: int = 0, limit: int = MAX_LIST) -> Sequence[Reminder]:
        """Read reminders in the order of their numbers, page by page."""
        return await self._db.run(reminders.list_reminders(after, limit))

    async def delete(self, reminder_id: int) -> Reminder:
        """Forget a reminder and say what it was; raises ReminderNotFound. A job that was made of it stays."""
        return await self._db.run(audited(reminders.delete(reminder_id), self._actor, reminders.was_deleted))

    async def enqueue_due(self, make: Callable[[Reminder], NewJob], *, limit: int = MAX_LIST) -> Sequence[Reminder]:
        """Enqueue one job for each reminder that is due and has none, and note it in the same transaction."""
        return await self._db.run(reminders.enqueue_due(make, limit))

    async def prune(self, keep: timedelta, *, limit: int = 1000) -> int:
        """Forget reminders whose job was made longer ago than `keep`; returns how many went."""
        return await self._db.run(reminders.prune(keep, limit))

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        return await self._db.run(tally.count("count_reminders"))
