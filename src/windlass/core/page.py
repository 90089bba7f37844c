"""A page of jobs: what is asked for, in which order, and where the next page begins."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import field, fields
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from windlass.core.checks import check_range, check_text
from windlass.core.filter import JobFilter
from windlass.core.job import Job
from windlass.core.record import record
from windlass.errors import InvalidInput

MAX_PAGE = 500
MAX_OFFSET = 10_000
MOST_COUNTED = 10_000
MOST_SORTED = 5_000
"""How many of the newest are looked at where no index has the order, or a text is searched for. Twice as many take too long."""
_MAX_CURSOR = 200
_INT64 = 2**63


class Sort(StrEnum):
    """What a list of jobs may be ordered by."""

    CREATED_AT = "created_at"
    """The order of their numbers."""
    UPDATED_AT = "updated_at"
    RUN_AT = "run_at"
    PRIORITY = "priority"
    """Then by due time and number: descending, it is the order of claims."""
    COMPLETED_AT = "completed_at"
    """Jobs that are not over come last, in either direction."""
    STATE = "state"


class Keys(NamedTuple):
    """Where a row stands in its list: compared one after the other, always ascending."""

    first: int
    second: int
    third: int


class Cursor(NamedTuple):
    """The last row of a page, and what its list counted when it began."""

    after: Keys
    total: int
    is_total_exact: bool


@record(kw_only=True)
class JobQuery:
    """A page of the jobs that a filter means."""

    filter: JobFilter = field(default_factory=JobFilter)
    sort: Sort = Sort.CREATED_AT
    is_descending: bool = True
    limit: int = 50
    offset: int = 0
    cursor: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no page can be."""
        if self.sort not in frozenset(Sort):
            raise InvalidInput("sort", self.sort, f"must be one of {', '.join(Sort)}")
        check_range("limit", self.limit, 1, MAX_PAGE)
        if not isinstance(self.offset, int) or not 0 <= self.offset <= MAX_OFFSET:
            raise InvalidInput("offset", self.offset, f"must be between 0 and {MAX_OFFSET}; go on with the cursor")
        if self.cursor is not None and self.offset:
            raise InvalidInput("offset", self.offset, "give a cursor or an offset, not both")
        self.position()

    def position(self) -> Cursor | None:
        """Read the cursor; one of another list is refused."""
        if self.cursor is None:
            return None
        check_text("cursor", self.cursor, _MAX_CURSOR)
        try:
            digest, first, second, third, total, is_exact = json.loads(urlsafe_b64decode(self.cursor))
        except (ValueError, TypeError):
            raise InvalidInput("cursor", self.cursor, "is not one that a list gave out") from None
        if digest != self._digest():
            raise InvalidInput("cursor", self.cursor, "belongs to another list: the filter or the order has changed")
        return Cursor(_keys(self.cursor, [first, second, third]), _number(self.cursor, total), is_exact is True)

    def cursor_at(self, place: Cursor) -> str:
        """Write the cursor of the page after this row."""
        values = [self._digest(), *place.after, place.total, place.is_total_exact]
        return urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode()

    def _digest(self) -> str:
        described = repr((self.sort, self.is_descending, _described(self.filter)))
        return sha256(described.encode()).hexdigest()[:12]


def _described(jobs: JobFilter) -> list[object]:
    """List what a filter asks for, equal for filters that mean the same."""
    same = {
        "states": sorted((one.state, sorted(one.reasons) if one.reasons is not None else None) for one in jobs.state_filters),
        "tasks": sorted(jobs.tasks),
        "lanes": sorted(jobs.lanes),
        "since": None if jobs.since is None else jobs.since.timestamp(),
    }
    return [same.get(one.name, getattr(jobs, one.name)) for one in fields(jobs)]


def _keys(cursor: str, values: list[object]) -> Keys:
    return Keys._make(_number(cursor, value) for value in values)


def _number(cursor: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 < value < _INT64:
        raise InvalidInput("cursor", cursor, "is not one that a list gave out")
    return value


@record
class Page:
    """Some jobs of a list, with how many there are in all."""

    jobs: tuple[Job, ...]
    total: int
    is_total_exact: bool
    """Otherwise there are at least `total`: counting stops after a while."""
    is_complete: bool
    """Otherwise only the newest jobs were looked at, or sorted; the rest was left out."""
    next_cursor: str | None


class CappedCount(NamedTuple):
    """A total; one that is not exact means that there are at least so many."""

    total: int
    is_exact: bool
