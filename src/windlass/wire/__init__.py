"""Answers of the HTTP API, written by the server and read by its client."""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict

from windlass.core.record import record

T = TypeVar("T")
_CONFIG = ConfigDict(json_schema_serialization_defaults_required=True)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def answer(cls: type[T]) -> type[T]:
    """Make a record of an answer: what has a default may be left out by other servers than ours; ours sends every field."""
    made: Any = record(kw_only=True)(cls)
    made.__pydantic_config__ = _CONFIG
    return made  # type: ignore[no-any-return]
