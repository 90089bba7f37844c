"""The dead letters: what failed for good, grouped by its error."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.job import MAX_KEY
from windlass.core.letter_page import LetterQuery, LetterStatus, status_of
from windlass.core.letters import MAX_NOTE
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.json_tree import pretty
from windlass.web.job_shape import answer_rules
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_GROUPS = 50
_LETTERS = 50
_CANARIES = 5


async def show_dead(
    request: Request,
    fingerprint: Annotated[str | None, Query(max_length=MAX_KEY)] = None,
    status: Annotated[LetterStatus, Query()] = LetterStatus.OPEN,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    *,
    new: Annotated[bool, Query()] = False,
) -> Response:
    """Show the groups of dead letters, and the letters of one group or all; `new` leaves only kinds of the newest version."""
    letters = reader_of(request).letters
    at = await now(request)
    query = LetterQuery(status=status, fingerprint=fingerprint or None, limit=_LETTERS, cursor=cursor)
    page = await letters.list(query)
    groups = await letters.groups(is_open=True, is_new=True if new else None, limit=_GROUPS)
    rules = answer_rules(request)
    return draw(
        request,
        "dead.html",
        at,
        here="/dead",
        title="Dead letters",
        groups=groups,
        counts=await letters.counts(),
        canaries=await reader_of(request).canaries.list(limit=_CANARIES),
        payload_of=lambda letter: pretty(rules.hide(letter.edited_payload or letter.original_job.get("payload"))),
        page=page,
        shown=status,
        statuses=tuple(LetterStatus),
        status_of=status_of,
        longest_note=MAX_NOTE,
        is_new=new,
        fingerprint=fingerprint,
    )


ROUTES = (Route("GET", "/dead", Role.VIEWER, show_dead, is_page=True, is_costly=True),)
