"""The address of a list of jobs: filters, order, size and columns, and what each is called on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from windlass.core.filter import JobFilter
from windlass.core.job import JobState

STATES = (
    JobState.PENDING,
    JobState.SCHEDULED,
    JobState.RUNNING,
    JobState.COMPLETED,
    JobState.FAILED,
    JobState.PAUSED,
    JobState.CANCELLED,
)
SIZES = (25, 50, 100, 200)
COLUMNS: Mapping[str, str] = {
    "lane": "Lane",
    "priority": "Priority",
    "subject": "Subject",
    "correlation": "Correlation",
    "attempt": "Tries",
    "worker": "Worker",
    "created": "Made",
    "closed": "Ended",
}
"""What may be shown beside number, task, state, duration, due time and last change."""
FILTERS = ("task", "lane", "priority", "subject", "correlation", "worker", "since", "error")
"""What a token may ask for beside states; a plain text is searched for."""


class FilterToken(NamedTuple):
    """A filter of the list, and the address of the list without it."""

    name: str
    value: str
    without: str


class JobsAddress(NamedTuple):
    """What the address of a list asks for; everything else is as it is by default."""

    state: str | None = None
    task: str | None = None
    lane: str | None = None
    priority: int | None = None
    subject: str | None = None
    correlation: str | None = None
    worker: str | None = None
    since: str | None = None
    error: str | None = None
    search: str | None = None
    sort: str = "created_at"
    order: str = "desc"
    size: int = 50
    columns: str | None = None

    def link(self, **changes: object) -> str:
        """Return the address of the list with something changed, from its first page."""
        asked = self._replace(**changes)._asdict()  # type: ignore[arg-type]
        plain = _PLAIN._asdict()
        return "/jobs?" + urlencode({name: value for name, value in asked.items() if value not in {None, "", plain[name]}})

    def toggled(self, state: JobState) -> str:
        """Return the address with a state added or left out."""
        chosen = set(self.states) ^ {state.value}
        return self.link(state=",".join(one.value for one in STATES if one.value in chosen) or None)

    def sorted_by(self, sort: str) -> str:
        """Return the address with another order; the same again turns it round."""
        order = "asc" if self.sort == sort and self.order == "desc" else "desc"
        return self.link(sort=sort, order=order)

    @property
    def states(self) -> list[str]:
        """The states that were asked for."""
        return [one.strip() for one in (self.state or "").split(",") if one.strip()]

    @property
    def tokens(self) -> list[FilterToken]:
        """The filters, each of which can be left out."""
        states = [FilterToken("state", state, self.toggled(JobState(state))) for state in dict.fromkeys(self.states)]
        given = ((name, getattr(self, name)) for name in FILTERS)
        return states + [
            FilterToken(name, str(value), self.link(**{name: None})) for name, value in given if value not in {None, ""}
        ]

    @property
    def shown(self) -> frozenset[str]:
        """The columns that were asked for."""
        return frozenset(("lane",) if self.columns is None else self.columns.split(","))


_PLAIN = JobsAddress()


def bulk_filter(wanted: JobFilter) -> dict[str, object]:
    """Write a filter as `POST /api/v1/bulk` takes it."""
    given: dict[str, object] = {
        "state": [one.state for one in wanted.state_filters],
        "task": list(wanted.tasks),
        "lane": list(wanted.lanes),
        "source_id": wanted.subject,
        "search": wanted.search,
        "correlation_id": wanted.correlation_id,
        "since": wanted.since.isoformat() if wanted.since else None,
        "priority": wanted.priority,
        "worker": wanted.worker,
        "error": wanted.error,
    }
    return {name: value for name, value in given.items() if value is not None and value != []}
