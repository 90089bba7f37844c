"""Tasks as the database knows them, whether a worker has their code at this moment or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME
from windlass.core.payload import check_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTask:
    """A task as a starting process declares it; `options` is JSON text, `breaker` the name of what gates its claims."""

    name: str
    lane: str = "default"
    options: str = "{}"
    breaker: str | None = None

    def __post_init__(self) -> None:
        """Refuse what the registry could not keep."""
        check_text("task", self.name, MAX_NAME)
        check_text("lane", self.lane, MAX_NAME)
        check_stored(self.options, field="options")
        if self.breaker is not None:
            check_text("breaker", self.breaker, MAX_NAME)


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task's entry; one that was only paused, and never declared, is not known to enqueue."""

    name: str
    lane: str
    options: str
    breaker: str | None
    is_declared: bool
    paused_at: datetime | None
    paused_by: str | None
    first_seen_at: datetime
    seen_at: datetime
