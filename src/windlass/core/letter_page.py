"""Filters and pages of dead letters."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from windlass.core.checks import check_instant, check_range, check_text
from windlass.core.job import MAX_KEY, MAX_NAME, DeadLetter
from windlass.core.record import record
from windlass.errors import InvalidInput

MAX_LETTERS = 500
MOST_LETTERS_READ = 5_000
"""How many of the newest letters lists, groups and counts look at."""
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,9})-([01])")


class LetterCursor(NamedTuple):
    """The last letter of a page, and what its list counted when it began."""

    died_us: int
    id: int
    total: int
    is_total_exact: bool

    def encode(self) -> str:
        """Write it as a caller sees it."""
        return f"{self.died_us}-{self.id}-{self.total}-{int(self.is_total_exact)}"


class LetterStatus(StrEnum):
    """The status of a dead letter."""

    OPEN = "open"
    """It was neither acknowledged nor requeued."""
    ACKNOWLEDGED = "acknowledged"
    CLOSED = "closed"
    """Its job came back."""


def status_of(letter: DeadLetter) -> LetterStatus:
    """Return the status of a letter; closed takes precedence over acknowledged."""
    if letter.closed_at is not None:
        return LetterStatus.CLOSED
    return LetterStatus.OPEN if letter.acknowledged_at is None else LetterStatus.ACKNOWLEDGED


@record(kw_only=True)
class LetterQuery:
    """A page of dead letters, newest death first; an empty field asks for nothing."""

    status: LetterStatus | None = None
    task: str | None = None
    fingerprint: str | None = None
    since: datetime | None = None
    """Died at this time or later."""
    limit: int = 50
    cursor: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no letter could have."""
        check_range("limit", self.limit, 1, MAX_LETTERS)
        if self.task is not None:
            check_text("task", self.task, MAX_NAME)
        if self.fingerprint is not None:
            check_text("fingerprint", self.fingerprint, MAX_KEY)
        if self.since is not None:
            check_instant("since", self.since)
        self.position()

    def position(self) -> LetterCursor | None:
        """Read the cursor."""
        if self.cursor is None:
            return None
        found = _CURSOR.fullmatch(self.cursor)
        if found is None:
            raise InvalidInput("cursor", self.cursor, "is not one that a list gave out")
        return LetterCursor(int(found[1]), int(found[2]), int(found[3]), found[4] == "1")


@record
class LetterPage:
    """Some dead letters, with how many there are."""

    letters: tuple[DeadLetter, ...]
    total: int
    is_total_exact: bool
    """Otherwise there are at least so many: only the newest were looked at."""
    next_cursor: str | None


class LetterGroup(NamedTuple):
    """Deaths for the same reason, with the newest as an example."""

    fingerprint: str
    letters: int
    deaths: int
    last_died_at: datetime
    newest_id: int
    task: str
    error: str
    in_hour: int = 0
    """How many of these letters died within the last hour."""
    in_day: int = 0
    in_week: int = 0
    first_died_at: datetime | None = None
    """When the first letter of this kind that is still kept was written."""
    version: str | None = None
    """The version of the application that the first one came from."""
    is_new: bool = False
    """Whether it first appeared with the newest version of the application."""


class LetterGroups(NamedTuple):
    """Groups of dead letters, the one with the newest death first."""

    groups: tuple[LetterGroup, ...]
    is_complete: bool


class LetterCounts(NamedTuple):
    """How many letters died lately, and how many were not dealt with; beyond a bound, at least so many."""

    hour: int
    day: int
    week: int
    open: int
    is_exact: bool


class OpenLetters(NamedTuple):
    """How many letters were not dealt with; beyond a bound, at least so many."""

    letters: int
    is_exact: bool
