"""Reads a database and reports every broken rule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.finding import Notice
from windlass.core.retention import DEFAULT, Retention
from windlass.core.retry import PROFILES, Profile
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.doctor.job_row import JobRow
from windlass.store.doctor.job_rules import check_job
from windlass.store.doctor.part_rules import EXECUTION_RULES, LETTER_RULES, BodyRow, ExecutionRow, LetterRow, check_body
from windlass.store.doctor.rule import BrokenRule, broken
from windlass.store.doctor.table_rules import WHOLE
from windlass.store.rows import SHAPES, Row, Shape

if TYPE_CHECKING:
    from windlass.store.store import Store

__all__ = ["BrokenRule", "check", "no_notice"]

_PAGE = 500
# A payload may have a megabyte.
_BODIES = 32
_FIRST = -(2**63)
SHAPES |= {
    "doctor_jobs": Shape.of(JobRow),
    "doctor_bodies": Shape.of(BodyRow),
    "doctor_executions": Shape.of(ExecutionRow),
    "doctor_letters": Shape.of(LetterRow),
}


def no_notice(_what: str, _rows: int) -> None:
    """Ignore the progress of the checks."""


async def check(
    store: Store,
    *,
    profiles: Mapping[str, Profile] = PROFILES,
    kept: Retention = DEFAULT,
    notice: Notice = no_notice,
) -> list[BrokenRule]:
    """Read the whole database and report every broken rule; an empty list is a healthy store.

    It reads page by page and may run beside workers: what must agree is read by one statement.
    """
    pages = _Pages(store, notice)
    problems: list[BrokenRule] = []
    async for row in pages.walk("doctor_jobs", _PAGE, kept_dead=kept.keep_dead):
        problems += check_job(JobRow._make(row), profiles, kept.keep_executions)
    async for row in pages.walk("doctor_bodies", _BODIES):
        problems += check_body(BodyRow._make(row))
    async for row in pages.walk("doctor_executions", _PAGE, second_key="after_number"):
        problems += broken(EXECUTION_RULES, ExecutionRow._make(row))
    async for row in pages.walk("doctor_letters", _PAGE):
        problems += broken(LETTER_RULES, LetterRow._make(row))
    for place, (query, describe) in enumerate(WHOLE.items()):
        notice("tables", place)
        problems += describe(await store.run(_read(query, {})))
    notice("audit", 0)
    problems += [BrokenRule("audit", None, one.detail) for one in await store.audit.verify()]
    return problems


class _Pages:
    """Walks queries whose first columns are their key."""

    def __init__(self, store: Store, notice: Notice) -> None:
        self._store = store
        self._notice = notice

    async def walk(self, query: str, limit: int, *, second_key: str | None = None, **others: object) -> AsyncIterator[Row]:
        """Read page after page."""
        params: dict[str, object] = {"after": _FIRST, "limit": limit, **others}
        if second_key is not None:
            params[second_key] = 0
        rows = 0
        while True:
            found = await self._store.run(_read(query, params))
            rows += len(found)
            self._notice(query.removeprefix("doctor_"), rows)
            for row in found:
                yield row
            if len(found) < limit:
                return
            params = params | {"after": found[-1][0]}
            if second_key is not None:
                params[second_key] = found[-1][1]


def _read(query: str, params: dict[str, Any]) -> Call[Sequence[Row]]:
    def steps(_: Means) -> Steps[Sequence[Row]]:
        return (yield Step(query, params))

    # Reads whole tables, whatever their size.
    return Call(steps, is_single=True, is_read=True, timeout=timedelta())
