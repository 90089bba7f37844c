"""Kinds of values that many routes take or give."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from windlass.core.job import MAX_NAME
from windlass.core.source import MAX_URL

MAX_LIMIT = 500
# No control characters: names are shown in lists and logs.
LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=LINE)]
SourceUrl = Annotated[str, StringConstraints(min_length=8, max_length=MAX_URL, pattern=r"^https?://[^\x00-\x20\x7f-\x9f]+$")]
PathName = Annotated[str, Path(min_length=1, max_length=MAX_NAME)]
Limit = Annotated[int, Query(ge=1, description=f"How many at most; more than {MAX_LIMIT} is taken as {MAX_LIMIT}.")]
"""Capped with `capped`."""


_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}")


def _is_text(value: Any) -> Any:
    # Pydantic would also read a number as seconds since 1970.
    if not isinstance(value, str) or not _ISO.match(value):
        raise ValueError("must be a time such as 2025-12-29T10:30:00Z")
    return value


Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_is_text)]


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
