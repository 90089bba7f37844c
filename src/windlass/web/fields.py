"""Kinds of values that many routes take or give."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from windlass.core.job import MAX_NAME

MAX_LIMIT = 500
# No control characters: names are shown in lists and logs.
LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=LINE)]
PathName = Annotated[str, Path(min_length=1, max_length=MAX_NAME)]
Limit = Annotated[int, Query(ge=1, description=f"How many at most; more than {MAX_LIMIT} is taken as {MAX_LIMIT}.")]
"""Capped with `capped`."""


class Body(BaseModel):
    """A request's body: a field it does not have is refused and not dropped."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Listed(BaseModel):
    """What every list says beside its rows."""

    total: int
    is_total_exact: bool = True
    """Otherwise there are at least `total`."""


def capped(limit: int) -> int:
    """Give no more than a page may have."""
    return min(limit, MAX_LIMIT)
