"""Tasks as the database knows them, whether a worker has their code at this moment or not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from windlass.core.breaker import BreakerSpec
from windlass.core.checks import check_text
from windlass.core.job import DEFAULT_RETRY, MAX_NAME, OnConflict, UniqueScope
from windlass.core.payload import JsonText, check_stored, decode, decode_object, encode_object
from windlass.core.record import record
from windlass.core.retry import RetrySpec
from windlass.core.task import TaskSpec
from windlass.errors import InvalidInput

UniqueRule = tuple[str, ...] | Literal["all", "code"]
"""The arguments that make two jobs the same: some by name, all of them, or a function that only the task's code has."""


@record(kw_only=True)
class DeclaredTask:
    """A task as a starting process declares it; `options` is JSON text, `breaker` the name of what gates its claims."""

    name: str
    lane: str = "default"
    options: str = "{}"
    breaker: str | None = None

    def __post_init__(self) -> None:
        """Refuse what the registry could not keep."""
        check_text("task", self.name, MAX_NAME)
        check_text("lane", self.lane, MAX_NAME)
        check_stored(self.options, field="options")
        if self.breaker is not None:
            check_text("breaker", self.breaker, MAX_NAME)


@record
class KnownTask:
    """A task's entry; one that was only paused, and never declared, is not known to enqueue."""

    name: str
    lane: str
    options_json: str
    breaker: str | None
    is_declared: bool
    paused_at: datetime | None
    paused_by: str | None
    first_seen_at: datetime
    seen_at: datetime

    def declared(self) -> DeclaredOptions:
        """Read what its jobs get when their enqueuer does not set it."""
        return DeclaredOptions.decode(self.lane, self.options_json)

    @property
    def options(self) -> dict[str, Any]:
        """What its code declared, read anew each time."""
        return decode_object(self.options_json, field="options")


@record(kw_only=True)
class DeclaredOptions:
    """What a process without a task's code needs to enqueue it as its code would."""

    fields: Mapping[str, Any]
    """Fields of a NewJob."""
    unique: UniqueRule | None = None
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the payload; None when the code has none to show."""

    @classmethod
    def decode(cls, lane: str, text: str) -> DeclaredOptions:
        """Read what `encode_options` wrote, here or in another version: what this version cannot read is left out."""
        stored = decode(text, field="options")
        fields: dict[str, Any] = {"lane": lane}
        for name, read in _READ.items():
            try:
                if stored.get(name) is not None:
                    fields[name] = read(stored[name])
            except (InvalidInput, TypeError, ValueError, OverflowError):
                continue
        unique, schema = stored.get("unique"), stored.get("schema")
        return cls(
            fields=fields,
            unique=tuple(unique) if isinstance(unique, list) else unique if unique in {"all", "code"} else None,
            schema=schema if isinstance(schema, dict) else None,
        )


def declared_breaker(name: str, options: str) -> BreakerSpec | None:
    """Read when a task's breaker opens and for how long; None where the declaring process did not write it."""
    try:
        stored = decode(options, field="options")["breaker"]
        return BreakerSpec(name, stored["threshold"], timedelta(seconds=stored["open_for"]))
    except (InvalidInput, LookupError, TypeError, OverflowError):
        return None


_READ: dict[str, Any] = {
    "priority": int,
    "max_attempts": int,
    "timeout": lambda seconds: timedelta(seconds=seconds),
    "retry": RetrySpec.decode,
    "unique_scope": UniqueScope,
    "on_conflict": OnConflict,
    "metadata": lambda value: encode_object(value, field="metadata"),
}


def declared_task(spec: TaskSpec) -> DeclaredTask:
    """Record what a process that has the code declares of a task."""
    options = {
        "isolation": spec.isolation,
        "priority": spec.priority or None,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "retry": None if spec.retry == DEFAULT_RETRY else spec.retry,
        "breaker": spec.breaker,
        **spec.declared(),
    }
    return DeclaredTask(
        name=spec.name,
        lane=spec.lane,
        options=encode_options(options),
        breaker=None if spec.breaker is None else spec.breaker.name,
    )


def encode_options(options: Mapping[str, Any]) -> JsonText:
    """Write a task's options for the registry; None is left out."""
    return encode_object({name: _written(value) for name, value in options.items() if value is not None}, field="options")


def _written(value: Any) -> Any:
    for kind, write in _WRITE:
        if isinstance(value, kind):
            return write(value)
    return value


_WRITE: tuple[tuple[type, Any], ...] = (
    (timedelta, timedelta.total_seconds),
    (RetrySpec, RetrySpec.encode),
    (BreakerSpec, lambda spec: {"threshold": spec.threshold, "open_for": spec.open_for.total_seconds()}),
    (JsonText, decode),
    (StrEnum, str),
    (tuple, list),
)
