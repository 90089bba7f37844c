"""One request, described: what is sent, how its answer is read, and whether it may be sent twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, is_dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID

from pydantic import TypeAdapter

from windlass.core.durations import Duration, parse_duration
from windlass.core.record import record
from windlass.http_client.records import RemoteEnqueued, RemoteJob

T = TypeVar("T")
API = "/api/v1"

JobRef = int | str | UUID | RemoteJob | RemoteEnqueued
"""A job's number or UUID, or what an enqueue or a list gave."""


@record(kw_only=True)
class Ask(Generic[T]):
    """A request ready to be sent any number of ways."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    is_repeatable: bool = False
    """Whether sending it twice has the effect of once: it may then be sent again when the connection breaks."""


def get(path: str, read: Callable[[Any], T], query: Mapping[str, Any] | None = None) -> Ask[T]:
    """Describe a question."""
    return Ask(method="GET", path=path, read=read, query=_given(query or {}), is_repeatable=True)


def post(path: str, read: Callable[[Any], T], body: Mapping[str, Any] | None = None, *, is_repeatable: bool = False) -> Ask[T]:
    """Describe a change."""
    sent = None if body is None else _given(body)
    return Ask(method="POST", path=path, read=read, body=sent or None, is_repeatable=is_repeatable)


@lru_cache(maxsize=64)
def as_one(kind: type[T]) -> Callable[[Any], T]:
    """Read an answer as one record."""
    return TypeAdapter(kind).validate_python


@lru_cache(maxsize=64)
def as_list(key: str, kind: type[T]) -> Callable[[Any], list[T]]:
    """Read an answer's list of records."""
    adapter = TypeAdapter(list[kind])  # type: ignore[valid-type]  # a type that is known at run time

    def read(answer: Any) -> list[T]:
        return adapter.validate_python(answer[key])

    return read


def word(value: object) -> str:
    """Write a name or an id as a segment of a path."""
    return quote(str(value), safe="")


def job_path(job: JobRef, *rest: str) -> str:
    """Return the path of a job."""
    ref = job.number if isinstance(job, RemoteJob | RemoteEnqueued) else job
    return "/".join((API, "jobs", word(ref), *rest))


def seconds(length: Duration, field_name: str) -> float:
    """Read a length of time; raises InvalidInput."""
    return parse_duration(length, field=field_name).total_seconds()


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not given, and write the rest as JSON and queries have it."""
    return {name: plain(value) for name, value in values.items() if value is not None}


def plain(value: Any) -> Any:
    """Write an instant, a length of time or an id as the API takes it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bool) or not is_dataclass(value):
        return value
    raise TypeError(f"{type(value).__name__} cannot be sent")
