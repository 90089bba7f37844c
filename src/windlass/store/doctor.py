"""Reads a database and reports every broken rule."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from windlass.store.sql_store import SqlStore


class Problem(NamedTuple):
    """A rule that a row breaks."""

    rule: str
    job_id: int | None
    detail: str


async def check(store: SqlStore, *, now: datetime | None = None) -> list[Problem]:
    """Read the whole database and report every broken rule; an empty list is a healthy store."""
    raise NotImplementedError
