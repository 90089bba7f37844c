"""Kinds of values that many routes take or return."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

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


def whole(value: Any) -> Any:
    """Return a number without a fraction as an integer, which it is to JSON Schema; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_NO_SCHEMAS = frozenset({"metadata", "serialization", "default", "expected"})


def _with_whole(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_whole(each) for each in schema]
    # A body within a body has had its turn.
    if not isinstance(schema, dict) or schema.get("type") == "model":
        return schema
    if schema.get("type") == "int":
        return no_info_before_validator_function(whole, cast("CoreSchema", schema))
    return {key: value if key in _NO_SCHEMAS else _with_whole(value) for key, value in schema.items()}


class Body(BaseModel):
    """A request's body: a field it does not have is refused and not dropped, and `151.0` is an integer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take `151.0` in integer fields, and only there: a payload's numbers stay as they were sent."""
        schema = handler(source)
        return {**schema, "schema": _with_whole(schema["schema"])} if schema["type"] == "model" else schema


class Listed(BaseModel):
    """What every list has beside its rows."""

    total: int
    is_total_exact: bool = True
    """Otherwise there are at least `total`."""


def capped(limit: int) -> int:
    """Return no more than a page may have."""
    return min(limit, MAX_LIMIT)
