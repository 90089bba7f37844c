"""Dead letters, and what operators do with them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field, StringConstraints, model_validator

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_KEY, MAX_NAME, MAX_TEXT, DeadLetter
from windlass.core.job_verbs import Bulk
from windlass.core.letter_page import LetterQuery, LetterStatus, status_of
from windlass.core.letters import MAX_NOTE, MOST_IDS, LetterFilter
from windlass.core.record import record, shaped
from windlass.secret_names import redact
from windlass.web.fields import Body, Instant, Limit, Listed, capped
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire.operations import CountsOut, GroupOut, LetterOut, NoteOut

LetterId = Annotated[int, Path(ge=1, le=MAX_JOB)]
Fingerprint = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY)]
TaskName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]


@record(kw_only=True)
class WholeLetterOut(LetterOut):
    """A dead letter with the job as it was when it died."""

    original_job: dict[str, Any]
    """Values under keys that look secret are hidden from viewers."""
    error_details: dict[str, Any] | None
    edited_payload: dict[str, Any] | None = None
    """The payload its job comes back with, if it was changed; secrets are hidden from viewers."""
    notes: tuple[NoteOut, ...] = ()
    """What people wrote about it, the oldest first."""


class LettersOut(Listed):
    """Dead letters, newest death first."""

    dead_letters: list[LetterOut]
    next: str | None
    """Send it as `cursor` for the next page."""


class PayloadIn(Body):
    """What the job of a letter comes back with."""

    payload: dict[str, Any]


class LetterNoteIn(Body):
    """A note about a letter."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NOTE)]


class DryRunIn(Body):
    """How to requeue a group."""

    dry_run: bool = False
    """Only count what would be meant."""


class GroupsOut(Listed):
    """Kinds of deaths, the one with the newest first."""

    groups: list[GroupOut]


@record(kw_only=True)
class RequeuedOut(WholeLetterOut):
    """A closed letter and the job that came back for it."""

    requeued_id: int
    """The number of the job that runs again: the one that died, or one made anew if it was gone."""


class NoteIn(Body):
    """What to remember about an acknowledgement."""

    note: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None


class LetterFilterIn(Body):
    """Letters that nothing has closed; an empty field asks for nothing."""

    task: TaskName | None = None
    fingerprint: Fingerprint | None = None


class LettersIn(Body):
    """Which letters: by number or by filter. An empty filter means every letter that nothing has closed."""

    ids: Annotated[list[Annotated[int, Field(ge=1, le=MAX_JOB)]], Field(max_length=MOST_IDS)] | None = None
    filter: LetterFilterIn | None = None
    dry_run: bool = False
    """Only count what would be meant."""

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Refuse to guess which letters are meant."""
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or filter")
        return self

    @property
    def wanted(self) -> LetterFilter:
        """The letters that are meant."""
        if self.filter is None:
            return LetterFilter(ids=tuple(self.ids or ()), is_open=False)
        return LetterFilter(task=self.filter.task, fingerprint=self.filter.fingerprint)


class NotedLettersIn(LettersIn):
    """Which letters to acknowledge, with a note."""

    note: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None


class LettersBulkOut(BaseModel):
    """How many letters were meant, changed, refused and missing."""

    matched: int
    changed: int
    refused: int
    """Those that were settled before, or whose job cannot come back."""
    missing: int
    """Ids that no letter has."""
    dry_run: bool


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "job_id": letter.job_id,
        "task": letter.task,
        "lane": letter.lane,
        "correlation_id": letter.original_job["correlation_id"],
        "error_message": letter.error,
        "fingerprint": letter.fingerprint,
        "deaths": letter.deaths,
        "first_died_at": letter.first_died_at,
        "died_at": letter.died_at,
        "status": status_of(letter),
        "acknowledged": letter.acknowledged_at is not None,
        "acknowledged_at": letter.acknowledged_at,
        "acknowledged_by": letter.acknowledged_by,
        "note": letter.note,
        "closed_at": letter.closed_at,
        "closed_reason": letter.closed_reason,
        "edited_by": letter.edited_by,
        "edited_at": letter.edited_at,
        "version": letter.version,
    }


def _whole(request: Request, letter: DeadLetter) -> dict[str, Any]:
    job, details, edited = letter.original_job, letter.details, letter.edited_payload
    if not context_of(request).principal.may(Role.PRODUCER):
        job, details, edited = redact(job), redact(details), redact(edited)
    notes = tuple(NoteOut(at=one.at, by=one.by, text=one.text) for one in letter.notes)
    return {**_facts(letter), "original_job": job, "error_details": details, "edited_payload": edited, "notes": notes}


async def list_dead_letters(  # noqa: PLR0917 - the parameters of the query, by name
    request: Request,
    status: Annotated[LetterStatus | None, Query()] = None,
    task: Annotated[TaskName | None, Query()] = None,
    fingerprint: Annotated[Fingerprint | None, Query()] = None,
    since: Annotated[Instant | None, Query(description="Died at this time or later.")] = None,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Limit = 50,
) -> LettersOut:
    """List dead letters, newest death first."""
    query = LetterQuery(status=status, task=task, fingerprint=fingerprint, since=since, cursor=cursor, limit=capped(limit))
    page = await reader_of(request).letters.list(query)
    found = [LetterOut(**_facts(letter)) for letter in page.letters]
    return LettersOut(dead_letters=found, total=page.total, is_total_exact=page.is_total_exact, next=page.next_cursor)


async def group_dead_letters(
    request: Request,
    is_open: Annotated[
        bool | None, Query(alias="open", description="Only those that were not dealt with, or only others.")
    ] = None,
    is_new: Annotated[
        bool | None,
        Query(
            alias="new", description="Only those that first appeared with the newest version of the application, or only others."
        ),
    ] = None,
    limit: Limit = 50,
) -> GroupsOut:
    """Group the newest dead letters by what killed the jobs."""
    found = await reader_of(request).letters.groups(is_open=is_open, is_new=is_new, limit=capped(limit))
    groups = [shaped(GroupOut, one, error_message=one.error) for one in found.groups]
    return GroupsOut(groups=groups, total=len(groups), is_total_exact=found.is_complete)


async def get_dead_letter(request: Request, id: LetterId) -> WholeLetterOut:  # noqa: A002 - the path's name
    """Read one dead letter with the job as it was."""
    return WholeLetterOut(**_whole(request, await context_of(request).app.letters.get(id)))


async def count_dead_letters(request: Request) -> CountsOut:
    """Count the letters of the last hour, day and week, and those that were not dealt with."""
    return shaped(CountsOut, await reader_of(request).letters.counts())


async def edit_dead_letter(request: Request, id: LetterId, body: PayloadIn) -> WholeLetterOut:  # noqa: A002 - the path's name
    """Change what the job of an open letter comes back with; the payload it died with is kept."""
    letter = await operator_of(request).letters.edit(id, body.payload, by=_caller(request))
    return WholeLetterOut(**_whole(request, letter))


async def note_dead_letter(request: Request, id: LetterId, body: LetterNoteIn) -> WholeLetterOut:  # noqa: A002 - the path's name
    """Add a note to a letter."""
    return WholeLetterOut(**_whole(request, await operator_of(request).letters.add_note(id, body.text, by=_caller(request))))


def _caller(request: Request) -> str:
    return context_of(request).principal.name[:MAX_NAME]


async def requeue_group(
    request: Request, fingerprint: Annotated[str, Path(min_length=1, max_length=MAX_KEY)], body: DryRunIn | None = None
) -> LettersBulkOut:
    """Bring back the jobs of every open letter of one kind, in batches."""
    dry_run = body is not None and body.dry_run
    done = await operator_of(request).letters.requeue_group(fingerprint, dry_run=dry_run)
    return LettersBulkOut(matched=done.matched, changed=done.changed, refused=done.refused, missing=0, dry_run=dry_run)


async def acknowledge_dead_letter(request: Request, id: LetterId, body: NoteIn | None = None) -> WholeLetterOut:  # noqa: A002 - the path's name
    """Note that the caller has seen a letter."""
    settled = await operator_of(request).letters.acknowledge([id], by=_caller(request), note=None if body is None else body.note)
    return WholeLetterOut(**_whole(request, settled.one()))


async def requeue_dead_letter(request: Request, id: LetterId) -> RequeuedOut:  # noqa: A002 - the path's name
    """Bring a dead job back with a fresh start and close its letter; twice does not run it twice."""
    settled = await operator_of(request).letters.requeue([id])
    return RequeuedOut(**_whole(request, settled.one()), requeued_id=settled.jobs[0].id)


async def acknowledge_dead_letters(request: Request, body: NotedLettersIn) -> LettersBulkOut:
    """Note that the caller has seen many letters, in batches."""
    by = _caller(request)
    done = await operator_of(request).letters.acknowledge_all(body.wanted, by=by, note=body.note, dry_run=body.dry_run)
    return _done(done, body)


async def requeue_dead_letters(request: Request, body: LettersIn) -> LettersBulkOut:
    """Bring back the jobs of many letters, in batches."""
    return _done(await operator_of(request).letters.requeue_all(body.wanted, dry_run=body.dry_run), body)


def _done(done: Bulk, body: LettersIn) -> LettersBulkOut:
    missing = 0 if body.ids is None else len(body.ids) - done.matched
    return LettersBulkOut(matched=done.matched, changed=done.changed, refused=done.refused, missing=missing, dry_run=body.dry_run)


ROUTES = (
    Route("GET", "/api/v1/dead-letters", Role.VIEWER, list_dead_letters, is_costly=True),
    Route("GET", "/api/v1/dead-letters/groups", Role.VIEWER, group_dead_letters, is_costly=True),
    Route("POST", "/api/v1/dead-letters/groups/{fingerprint}/requeue", Role.OPERATOR, requeue_group, errors=(404,)),
    Route("GET", "/api/v1/dead-letters/counts", Role.VIEWER, count_dead_letters, is_costly=True),
    Route("POST", "/api/v1/dead-letters/acknowledge", Role.OPERATOR, acknowledge_dead_letters),
    Route("POST", "/api/v1/dead-letters/requeue", Role.OPERATOR, requeue_dead_letters),
    Route("GET", "/api/v1/dead-letters/{id}", Role.VIEWER, get_dead_letter, errors=(404,)),
    Route("POST", "/api/v1/dead-letters/{id}/acknowledge", Role.OPERATOR, acknowledge_dead_letter, errors=(404, 409)),
    Route("PUT", "/api/v1/dead-letters/{id}/payload", Role.OPERATOR, edit_dead_letter, errors=(404, 409)),
    Route("POST", "/api/v1/dead-letters/{id}/notes", Role.OPERATOR, note_dead_letter, errors=(404,)),
    Route("POST", "/api/v1/dead-letters/{id}/requeue", Role.OPERATOR, requeue_dead_letter, errors=(404, 409)),
)
