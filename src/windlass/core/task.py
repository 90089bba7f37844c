"""What a worker knows of a task, and the tasks of one application by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from windlass.core.breaker import BreakerSpec
from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import DEFAULT_RETRY, MAX_ATTEMPTS, MAX_NAME, SHORTEST_TIMEOUT
from windlass.core.record import record
from windlass.core.retry import RetryPolicy, RetrySpec
from windlass.errors import InvalidInput

DEFAULT_LANE = "default"


class Isolation(StrEnum):
    """Where a handler runs: on the worker's event loop, in a thread of its own, or in a child process."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


@record(kw_only=True)
class TaskSpec:
    """A named function with its options."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[str], Mapping[str, Any]]
    """Reads a payload's JSON text into keyword arguments; raises InvalidPayload."""
    takes_context: bool = False
    """Whether the function's first parameter is the JobContext."""
    isolation: Isolation = Isolation.ASYNC
    lane: str = DEFAULT_LANE
    priority: int = 0
    max_attempts: int | None = None
    retry: RetrySpec = DEFAULT_RETRY
    timeout: timedelta | None = None
    never_retry: tuple[type[BaseException], ...] = ()
    """Errors that no retry helps: the job becomes a dead letter at once."""
    retry_by_error: tuple[tuple[type[BaseException], RetryPolicy], ...] = ()
    """The first that fits the error decides how long to wait, in place of the job's own policy."""
    breaker: BreakerSpec | None = None
    """Gates the claim: while it is open, no job of the task is taken."""
    is_exclusive: bool = False
    """Stopped when its lease cannot be renewed in time, for work that must never run twice at once."""
    memory_limit_mb: int | None = None
    """For process isolation."""
    declared: Callable[[], Mapping[str, Any]] = dict
    """Lists what processes without the code must know besides: the unique rule, the payload's schema and the like."""

    def __post_init__(self) -> None:
        """Refuse options that could not be kept."""
        check_text("task", self.name, MAX_NAME)
        check_text("lane", self.lane, MAX_NAME)
        check_range("priority", self.priority, -(2**31), 2**31 - 1)
        if self.max_attempts is not None:
            check_range("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS)
        if self.timeout is not None:
            check_wait("timeout", self.timeout, least=SHORTEST_TIMEOUT)
        if self.memory_limit_mb is not None:
            check_range("memory_limit_mb", self.memory_limit_mb, 16, 2**31 - 1)
            if self.isolation is not Isolation.PROCESS:
                raise InvalidInput("memory_limit_mb", self.memory_limit_mb, "needs isolation='process'")


class Registry:
    """The tasks this process has code for."""

    def __init__(self) -> None:
        """Start with none."""
        self._specs: dict[str, TaskSpec] = {}

    def add(self, spec: TaskSpec) -> None:
        """Register a task; two functions under one name are a mistake that would run the wrong code."""
        if spec.name in self._specs:
            raise InvalidInput("task", spec.name, "is already registered")
        self._specs[spec.name] = spec

    def copy(self) -> Registry:
        """Return another registry with the same tasks."""
        other = Registry()
        other._specs.update(self._specs)
        return other

    def get(self, name: str) -> TaskSpec | None:
        """Find a task by name."""
        return self._specs.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[TaskSpec]:
        return iter(self._specs.values())

    def __len__(self) -> int:
        return len(self._specs)

    @property
    def names(self) -> frozenset[str]:
        """Every registered name."""
        return frozenset(self._specs)
