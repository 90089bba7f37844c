"""What a task is declared with, and what a single enqueue may change."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, TypedDict, TypeVar

from windlass.core.breaker import BreakerSpec
from windlass.core.cadence import Cadence, Misfire, OnExhausted, Overlap
from windlass.core.durations import Duration, parse_duration
from windlass.core.job import CommonOptions, Edit, OnConflict, UniqueScope
from windlass.core.payload import encode, encode_object
from windlass.core.retry import PROFILES, RetryPolicy, RetrySpec
from windlass.core.task import Isolation
from windlass.errors import InvalidInput, nearest

Cadenced = str | timedelta | Cadence
Scope = UniqueScope | Literal["pending", "active", "forever"]
Conflict = OnConflict | Literal["ignore", "replace", "rerun", "reject"]
Unique = Callable[..., Any] | Sequence[str] | bool
Choice = TypeVar("Choice", bound=StrEnum)


class RetryOptions(TypedDict, total=False):
    """A retry policy as options; what is left out comes from the profile."""

    profile: str
    base: Duration
    cap: Duration
    jitter: float


class JobOptions(CommonOptions, total=False):
    """The options of one enqueue."""

    retry: RetrySpec | RetryOptions
    unique_scope: Scope
    on_conflict: Conflict
    parent_id: int
    description: str
    created_by: str


class UsingOptions(JobOptions, total=False):
    """The same, and the connection whose transaction the job belongs to."""

    connection: Any
    """A psycopg, sqlite3 or SQLAlchemy connection or session on the same database."""


class EditOptions(TypedDict, total=False):
    """What may be changed on a job that exists."""

    payload: Mapping[str, Any]
    metadata: Mapping[str, Any]
    description: str
    priority: int
    max_attempts: int
    retry: RetrySpec | RetryOptions
    timeout: Duration


class ScheduleOptions(TypedDict, total=False):
    """How a schedule comes back, beside its cadence."""

    timezone: str
    fixed_rate: bool
    start_at: datetime
    end_at: datetime
    max_runs: int
    misfire: Misfire | Literal["once", "skip", "all"]
    misfire_max: int
    on_exhausted: OnExhausted | Literal["fail", "next"]
    jitter: Duration
    spawn: bool
    """Enqueue a new job at each time, in place of running one job again and again."""
    overlap: Overlap | Literal["allow", "skip", "cancel_previous"]
    child_key: str
    """What a template's jobs have as their unique key."""


class RecurringOptions(UsingOptions, ScheduleOptions, total=False):
    """What a schedule is made with."""


class TaskOptions(ScheduleOptions, total=False):
    """How a task is declared; with `every`, `cron` or `cadence` it has a schedule of its name."""

    every: Duration
    cron: str
    cadence: Cadenced
    schedule_payload: Mapping[str, Any]

    name: str
    lane: str
    priority: int
    max_attempts: int
    retry: RetrySpec | RetryOptions
    timeout: Duration
    isolation: Isolation | Literal["async", "thread", "process"]
    unique: Unique
    unique_scope: Scope
    on_conflict: Conflict
    never_retry: Sequence[type[BaseException]] | type[BaseException]
    retry_by_error: Mapping[type[BaseException], RetryPolicy | RetryOptions]
    breaker: BreakerSpec | str
    exclusive: bool
    memory_limit_mb: int
    payload: Any
    subject: Callable[..., str | None]
    metadata: Mapping[str, Any]


JOB_OPTIONS = frozenset(JobOptions.__annotations__)
USING_OPTIONS = JOB_OPTIONS | {"connection"}
TASK_OPTIONS = frozenset(TaskOptions.__annotations__)


def check_names(given: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse an unknown option: a misspelt one would be ignored without an error."""
    for name in given:
        if name not in known:
            raise InvalidInput(name, given[name], f"is not an option{nearest(name, known)}; there are {', '.join(sorted(known))}")


def job_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn options into the fields of a NewJob."""
    return {name: _READ[name](value) if name in _READ else value for name, value in options.items() if value is not None}


def edit_of(changes: Mapping[str, Any]) -> Edit:
    """Turn changes into the record the store takes."""
    check_names(changes, frozenset(EditOptions.__annotations__))
    return Edit(**job_fields(changes))


def choice(kind: type[Choice], field: str) -> Callable[[Any], Choice]:
    """Make a reader of an option that is one of a fixed set of values."""

    def read(value: Any) -> Choice:
        try:
            return kind(value)
        except ValueError:
            raise InvalidInput(field, value, f"use one of {', '.join(kind)}") from None

    return read


def retry_spec(value: RetrySpec | Mapping[str, Any]) -> RetrySpec:
    """Read a retry policy as a row keeps it."""
    return value if isinstance(value, RetrySpec) else RetrySpec(**_retry_fields(value))


def retry_policy(value: RetryPolicy | Mapping[str, Any]) -> RetryPolicy:
    """Read a retry policy that leaves nothing open."""
    return value if isinstance(value, RetryPolicy) else retry_spec(value).resolve(PROFILES)


def _retry_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput("retry", value, "must be a RetrySpec or a mapping with base, cap, jitter, profile")
    check_names(value, frozenset(RetryOptions.__annotations__))
    durations = {name: parse_duration(value[name], field=f"retry.{name}") for name in ("base", "cap") if name in value}
    return {**value, **durations}


def isolation_of(function: Callable[..., Any], asked: str | None) -> Isolation:
    """Choose where a function runs, or check the choice."""
    is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
    if asked is None:
        return Isolation.ASYNC if is_async else Isolation.THREAD
    isolation = choice(Isolation, "isolation")(asked)
    if isolation is not Isolation.PROCESS and is_async is not (isolation is Isolation.ASYNC):
        kind = "a coroutine runs in async or process" if is_async else "a function runs in thread or process"
        raise InvalidInput("isolation", asked, kind)
    return isolation


def error_types(value: Any) -> tuple[type[BaseException], ...]:
    """Read one exception type or several."""
    types = (value,) if isinstance(value, type) else tuple(value)
    for each in types:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise InvalidInput("never_retry", each, "must be exception types")
    return types


def retries_by_error(value: Mapping[Any, Any]) -> tuple[tuple[type[BaseException], RetryPolicy], ...]:
    """Read the policies of single errors, in the order given."""
    return tuple((error_types(kind)[0], retry_policy(policy)) for kind, policy in value.items())


_READ: dict[str, Callable[[Any], Any]] = {
    "delay": lambda value: parse_duration(value, field="delay"),
    "timeout": lambda value: parse_duration(value, field="timeout"),
    "retry": retry_spec,
    "unique_scope": choice(UniqueScope, "unique_scope"),
    "on_conflict": choice(OnConflict, "on_conflict"),
    "payload": lambda value: encode_object(dict(value)),
    "metadata": lambda value: encode_object(dict(value), field="metadata"),
    "item_key": lambda value: encode(list(value), field="item_key"),
}
