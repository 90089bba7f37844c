"""Functions of the application that are called when something happens to jobs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from windlass.core.job import JobState
from windlass.errors import InvalidInput

Hook = Callable[[Any], Any]


class Happening(StrEnum):
    """The events that hooks are called for."""

    ENQUEUE = "enqueue"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"


class EnqueueEvent(NamedTuple):
    """What an enqueue hook gets. Inside a caller's transaction it is called before that commits."""

    job_id: int
    task: str
    lane: str
    is_duplicate: bool
    correlation_id: str | None
    parent_id: int | None


class StartEvent(NamedTuple):
    """What a start hook gets, on the worker's event loop just before the handler is called."""

    job_id: int
    task: str
    lane: str
    attempt: int
    correlation_id: str | None
    worker: str


class EndEvent(NamedTuple):
    """What a finish or fail hook gets, once the store has accepted the end of the run."""

    job_id: int
    task: str
    lane: str
    attempt: int
    correlation_id: str | None
    worker: str
    state: JobState
    """Where the job was left: a failed run that is tried again leaves it scheduled."""
    error: str | None
    duration: timedelta
    traceback: str | None = None
    exception: BaseException | None = None
    """What the handler raised; for a child process, the error made again from its text, as `JobFailed.__cause__` is."""


EnqueueHook = TypeVar("EnqueueHook", bound=Callable[[EnqueueEvent], Any])
StartHook = TypeVar("StartHook", bound=Callable[[StartEvent], Any])
EndHook = TypeVar("EndHook", bound=Callable[[EndEvent], Any])


class Hooks:
    """The hooks of one application."""

    def __init__(self) -> None:
        """Start with none."""
        self._hooks: dict[Happening, list[Hook]] = {happening: [] for happening in Happening}

    def add(self, happening: str, hook: Hook) -> None:
        """Register a hook; one for enqueue must be a plain function, as it is called with and without an event loop."""
        if happening not in {known.value for known in Happening}:
            raise InvalidInput("event", happening, f"use one of {', '.join(Happening)}")
        if happening == Happening.ENQUEUE and inspect.iscoroutinefunction(hook):
            raise InvalidInput("hook", hook, "an enqueue hook must be a plain function")
        self._hooks[Happening(happening)].append(hook)

    def copy(self) -> Hooks:
        """Return the same hooks, apart from these."""
        other = Hooks()
        other.become(self)
        return other

    def become(self, other: Hooks) -> None:
        """Replace these hooks by those of `other`."""
        self._hooks = {happening: list(hooks) for happening, hooks in other._hooks.items()}

    def of(self, happening: Happening) -> list[Hook]:
        """List the hooks for something, in the order they were added."""
        return self._hooks[happening]
