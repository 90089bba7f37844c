"""Pages and groups of dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_KEY, DeadLetter
from windlass.core.letter_page import (
    MAX_LETTERS,
    MOST_LETTERS_READ,
    LetterCounts,
    LetterCursor,
    LetterGroup,
    LetterGroups,
    LetterPage,
    LetterQuery,
    LetterStatus,
    OpenLetters,
)
from windlass.core.page import MOST_COUNTED
from windlass.errors import LetterGroupNotFound, LetterNotFound
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

_HEAD = 4
_PAGE = Shape((2, *Shape.of(DeadLetter, after=_HEAD).instants))
_GROUPS = Shape((4, 11), (13,))
SHAPES |= {f"list_letters_{source}": _PAGE for source in ("died", "alike", "open")} | {
    "get_letter": rows.LETTER,
    "group_letters": _GROUPS,
    "group_open_letters": _GROUPS,
}
_WINDOWS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


def list_letters(query: LetterQuery | None = None) -> Call[LetterPage]:
    """Read a page of dead letters, newest death first."""
    query = query or LetterQuery()
    source = "alike" if query.fingerprint else "open" if query.status is LetterStatus.OPEN else "died"
    return single(f"list_letters_{source}", _params(query), lambda found: _page(query, found), is_read=True)


def _params(query: LetterQuery) -> dict[str, Any]:
    position = query.position()
    return {
        "status": query.status,
        "task": query.task,
        "fingerprint": query.fingerprint,
        "since": query.since,
        "edge_at": batches.END_OF_TIME if position is None else batches.kept_instant(position.died_us),
        "edge_id": 0 if position is None else position.id,
        "limit": query.limit + 1,
    }


def _page(query: LetterQuery, found: Sequence[Row]) -> LetterPage:
    looked, matched, last_at, last_id = found[0][:_HEAD]
    letters = rows.dead_letters([row[_HEAD:] for row in found if row[_HEAD] is not None])
    shown = letters[: query.limit]
    position = query.position()
    is_end = looked <= MOST_LETTERS_READ or (query.since is not None and last_at < query.since)
    total = min(matched, MOST_LETTERS_READ) if position is None else position.total
    is_exact = is_end if position is None else position.is_total_exact
    following = None
    if len(letters) > query.limit:
        following = LetterCursor(batches.microseconds(shown[-1].died_at), shown[-1].id, total, is_exact).encode()
    elif not is_end:
        # There may be more that match beyond what was looked at.
        following = LetterCursor(batches.microseconds(last_at), last_id, total, is_exact).encode()
    return LetterPage(tuple(shown), total, is_exact, following)


def get_letter(letter_id: int) -> Call[DeadLetter]:
    """Read one dead letter; raises LetterNotFound."""

    def decode(found: Sequence[Row]) -> DeadLetter:
        if not found:
            raise LetterNotFound(letter_id)
        return rows.dead_letters(found)[0]

    return single("get_letter", {"id": letter_id if 0 < letter_id <= MAX_JOB else 0}, decode, is_read=True)


def group_letters(*, is_open: bool | None = None, is_new: bool | None = None, limit: int = 50) -> Call[LetterGroups]:
    """Group the newest dead letters by what killed the jobs, each with an example.

    New are those that first appeared with the newest version of the application.
    """
    check_range("limit", limit, 1, MAX_LETTERS)
    if is_open:
        return group_open_letters(is_new=is_new, limit=limit)
    params = {"is_open": is_open, "is_new": is_new, "limit": limit, **_WINDOWS}
    return single("group_letters", params, _groups, is_read=True)


def group_open_letters(*, is_new: bool | None = None, limit: int = 50, depth: int = MOST_LETTERS_READ) -> Call[LetterGroups]:
    """Group the newest `depth` letters that were not dealt with."""
    params = {"is_new": is_new, "limit": limit, "depth": depth + 1, **_WINDOWS}
    return single("group_open_letters", params, lambda found: _groups(found, depth), is_read=True)


def check_group(fingerprint: str) -> Call[None]:
    """Raise LetterGroupNotFound unless a dead letter has this fingerprint."""
    check_text("fingerprint", fingerprint, MAX_KEY)

    def decode(found: Sequence[Row]) -> None:
        if not found[0][0]:
            raise LetterGroupNotFound(fingerprint)

    return single("has_kind", {"fingerprint": fingerprint}, decode, is_read=True)


def count_letters() -> Call[LetterCounts]:
    """Count the letters of the last hour, day and week, and those that were not dealt with."""

    def steps(_: Means) -> Steps[LetterCounts]:
        [[hour, day, week]] = yield Step("count_letters", _WINDOWS)
        [[standing]] = yield Step("count_open_letters", {})
        windows = (min(one, MOST_LETTERS_READ) for one in (hour, day, week))
        is_exact = week <= MOST_LETTERS_READ and standing <= MOST_COUNTED
        return LetterCounts._make((*windows, min(standing, MOST_COUNTED), is_exact))

    return Call(steps, is_read=True)


def _groups(found: Sequence[Row], depth: int = MOST_LETTERS_READ) -> LetterGroups:
    groups = tuple(LetterGroup(*row[1:]) for row in found if row[1] is not None)
    return LetterGroups(groups, found[0][0] <= depth)


def count_open_letters() -> Call[OpenLetters]:
    """Count the letters that were not dealt with."""
    return single("count_open_letters", {}, _open, is_read=True)


def _open(found: Sequence[Row]) -> OpenLetters:
    number = found[0][0]
    return OpenLetters(min(number, MOST_COUNTED), number <= MOST_COUNTED)
