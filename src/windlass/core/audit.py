"""Who did what to which job or setting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts on jobs, as the audit log names them."""

    principal: str
    request_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name the log cannot keep."""
        check_text("principal", self.principal, MAX_NAME)
        if self.request_id is not None:
            check_text("request_id", self.request_id, MAX_NAME)


class Deed(NamedTuple):
    """One thing done or refused; `details` is JSON text."""

    action: str
    target: str | None = None
    outcome: str = "done"
    details: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A line of the audit log; `chain` is the digest over it and all lines before, once upkeep has added it."""

    id: int
    at: datetime
    principal: str
    action: str
    target: str | None
    outcome: str
    details: str | None
    request_id: str | None
    chain: str | None
