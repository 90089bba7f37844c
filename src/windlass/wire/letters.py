"""Dead letters and what operators do about them, as the HTTP API shows them."""

from __future__ import annotations

from datetime import datetime

from windlass.core.canary import CanaryState
from windlass.core.letter_page import LetterStatus
from windlass.wire import answer


@answer
class NoteOut:
    """What somebody wrote about a dead letter."""

    at: datetime
    by: str
    text: str


@answer
class CanaryOut:
    """A requeue of many letters, of which the first are tried before the others."""

    id: int
    state: CanaryState
    task: str | None = None
    fingerprint: str | None = None
    size: int
    """How many go first."""
    succeeded: int
    """How many of those have succeeded."""
    requeued: int
    """How many letters were brought back in all."""
    refused: int
    reason: str | None = None
    """Why it stopped."""
    jobs: tuple[int, ...] = ()
    """The numbers of the jobs that go first."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None


@answer
class LetterOut:
    """The record of a job that failed for good, without the job itself."""

    id: int
    job_id: int
    """The number of the job that died."""
    task: str
    lane: str
    correlation_id: str | None = None
    error_message: str
    fingerprint: str
    """The same for deaths of the same kind."""
    deaths: int
    """How often the job has died since the letter was opened; a schedule that goes on may die again."""
    first_died_at: datetime
    died_at: datetime
    status: LetterStatus
    acknowledged: bool
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    note: str | None = None
    """What was written with the acknowledgement."""
    closed_at: datetime | None = None
    closed_reason: str | None = None
    edited_by: str | None = None
    """Who changed the payload that its job comes back with."""
    edited_at: datetime | None = None
    version: str | None = None
    """The version of the application that the first death of this kind came from, if its worker named one."""


@answer
class GroupOut:
    """Deaths of the same kind, with the newest as an example."""

    fingerprint: str
    letters: int
    deaths: int
    last_died_at: datetime
    newest_id: int
    task: str
    error_message: str
    in_hour: int
    """How many of these letters died within the last hour."""
    in_day: int
    in_week: int
    first_died_at: datetime | None = None
    """When the first letter of this kind that is still kept was written."""
    version: str | None = None
    """The version of the application that the first one came from."""
    is_new: bool
    """Whether it first appeared with the newest version of the application."""


@answer
class CountsOut:
    """How many letters died lately, and how many nobody has dealt with."""

    hour: int
    day: int
    week: int
    open: int
    is_exact: bool
    """Otherwise there are at least so many: only the newest 5,000 were looked at, and 10,000 that are open."""
