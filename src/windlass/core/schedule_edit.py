"""What an operator changes on a schedule."""

from __future__ import annotations

from windlass.core.cadence import Cadence
from windlass.core.checks import check_characters, check_range, check_text
from windlass.core.job import INT32, MAX_KEY, MAX_SCHEDULE_NAME, MAX_TEXT
from windlass.core.record import record
from windlass.errors import InvalidInput


@record(kw_only=True)
class ScheduleEdit:
    """Changes of a schedule, all or none; absent fields stay as they are."""

    name: str | None = None
    description: str | None = None
    """An empty text takes the description away."""
    subject: str | None = None
    child_key: str | None = None
    cadence: Cadence | None = None
    """Only one that differs from the schedule's own moves its next run."""
    priority: int | None = None
    is_enabled: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no schedule could have."""
        for field, limit in (("name", MAX_SCHEDULE_NAME), ("subject", MAX_KEY), ("child_key", MAX_KEY)):
            value = getattr(self, field)
            if value is not None:
                check_text(field, value, limit)
        if self.priority is not None:
            check_range("priority", self.priority, -INT32 - 1, INT32)
        if self.description is not None:
            if len(self.description) > MAX_TEXT:
                raise InvalidInput("description", self.description, f"must have at most {MAX_TEXT} characters")
            check_characters("description", self.description)
