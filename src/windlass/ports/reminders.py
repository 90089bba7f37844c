"""The verbs of reminders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from windlass.core.job import NewJob
from windlass.core.reminder import NewReminder, Reminder
from windlass.core.tally import Tally


class Reminders(Protocol):
    """Mails that are to be sent once a time has come."""

    async def add(self, reminder: NewReminder) -> Reminder:
        """Keep a reminder."""
        ...

    async def get(self, reminder_id: int) -> Reminder:
        """Read a reminder; raises ReminderNotFound."""
        ...

    async def list(self, *, after: int = 0, limit: int = 500) -> Sequence[Reminder]:
        """Read reminders in the order of their numbers, page by page."""
        ...

    async def delete(self, reminder_id: int) -> Reminder:
        """Forget a reminder and say what it was; raises ReminderNotFound. A job that was made of it stays."""
        ...

    async def enqueue_due(self, make: Callable[[Reminder], NewJob], *, limit: int = 500) -> Sequence[Reminder]:
        """Enqueue one job for each reminder that is due and has none, and note it in the same transaction.

        Gives them as they are now. Any number of callers may do it at once: each reminder is one caller's.
        """
        ...

    async def prune(self, keep: timedelta, *, limit: int = 1000) -> int:
        """Forget reminders whose job was made longer ago than `keep`; returns how many went."""
        ...

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        ...
