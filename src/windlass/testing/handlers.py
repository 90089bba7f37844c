"""The application's handlers, with what they raise kept for the test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

from windlass.core.current import current_job
from windlass.core.task import Isolation, Registry, TaskSpec

Errors = dict[tuple[int, int], BaseException]
"""What was raised, by job and attempt."""


def watched(registry: Registry, errors: Errors) -> Registry:
    """Return the same tasks whose handlers' exceptions are kept in `errors`, by job."""
    made = Registry()
    for spec in registry:
        made.add(_watched(spec, errors))
    return made


def _watched(spec: TaskSpec, errors: Errors) -> TaskSpec:
    function = _kept(spec.function, errors)
    spec = replace(spec, function=function, arguments=_kept(spec.arguments, errors))
    if spec.isolation is Isolation.PROCESS:
        # A child would import the application anew, on its real database and without what the test has patched.
        isolation = Isolation.ASYNC if inspect.iscoroutinefunction(function) else Isolation.THREAD
        return replace(spec, isolation=isolation, memory_limit_mb=None)
    return spec


def _kept(function: Callable[..., Any], errors: Errors) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(inspect.unwrap(function)):

        @wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            with _keep(errors):
                return await function(*args, **kwargs)

        return run

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _keep(errors):
            return function(*args, **kwargs)

    return call


@contextmanager
def _keep(errors: Errors) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        job = current_job()
        if job is not None:
            errors[job.id, job.attempt] = error
        raise
