"""The async jobs system's reliability patterns: breaker, timeout, backoff."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack
from contextvars import copy_context
from datetime import timedelta
from random import Random, SystemRandom
from typing import Any, TypeVar, overload

from windlass.app import Windlass
from windlass.client.guard import Guard
from windlass.core.retry import PROFILES, Jitter, RetryPolicy
from windlass.errors import InvalidInput

T = TypeVar("T")
_MILLISECOND = timedelta(milliseconds=1)


@overload
def with_circuit_breaker(
    db: Windlass, service: str, opts: Mapping[str, Any], work: Callable[[], Awaitable[T]]
) -> Coroutine[Any, Any, T]: ...


@overload
def with_circuit_breaker(db: Windlass, service: str, opts: Mapping[str, Any], work: Callable[[], T]) -> T: ...


def with_circuit_breaker(db: Windlass, service: str, opts: Mapping[str, Any], work: Callable[[], Any]) -> Any:
    """Call `work` unless the service's breaker is open; opts: failure_threshold, open_duration_ms.

    For a coroutine function, or one that returns an awaitable, the answer is to be awaited, and counts when it is there.
    """
    given = {name.replace("-", "_"): value for name, value in opts.items()}
    if not given.keys() <= {"failure_threshold", "open_duration_ms"}:
        raise InvalidInput("opts", opts, "has only failure_threshold and open_duration_ms")
    duration = given.get("open_duration_ms")
    open_for = None if duration is None else timedelta(milliseconds=duration)
    guard = db.breaker(service, threshold=given.get("failure_threshold"), open_for=open_for)
    if inspect.iscoroutinefunction(work):
        return _guarded(guard, work)
    with ExitStack() as stack:
        stack.enter_context(guard)
        answer = work()
        if not inspect.isawaitable(answer):
            return answer
        # Only its end shows how the service does.
        stack.pop_all()
        return _settled(guard, answer)


async def _guarded(guard: Guard, work: Callable[[], Awaitable[T]]) -> T:
    async with guard:
        return await work()


async def _settled(guard: Guard, answer: Awaitable[T]) -> T:
    async with AsyncExitStack() as stack:
        stack.push_async_exit(guard)
        return await answer


@overload
def with_timeout(milliseconds: float, work: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]: ...


@overload
def with_timeout(milliseconds: float, work: Callable[[], T]) -> T: ...


def with_timeout(milliseconds: float, work: Callable[[], Any]) -> Any:
    """Call `work` and wait for it so long; raises TimeoutError then, and leaves its thread behind.

    A coroutine function, or one that returns an awaitable, is cancelled instead, and the answer is to be awaited. Either way
    `work` belongs to the job that calls it: its log lines and the jobs it enqueues.
    """
    if inspect.iscoroutinefunction(work):
        return _timed(milliseconds, work())
    answer = _in_thread(milliseconds, work)
    return _timed(milliseconds, answer) if inspect.isawaitable(answer) else answer


async def _timed(milliseconds: float, answer: Awaitable[T]) -> T:
    limit = asyncio.timeout(milliseconds / 1000)
    try:
        async with limit:
            return await answer
    except TimeoutError:
        if not limit.expired():
            raise
        raise _late(milliseconds) from None


def _in_thread(milliseconds: float, work: Callable[[], T]) -> T:
    answer: Future[T] = Future()

    def call() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            answer.set_exception(error)

    # A daemon: a call that never returns must not keep the process from ending.
    threading.Thread(target=copy_context().run, args=(call,), name="windlass-timeout", daemon=True).start()
    try:
        return answer.result(milliseconds / 1000)
    except TimeoutError:
        if answer.done():
            raise
        raise _late(milliseconds) from None


def _late(milliseconds: float) -> TimeoutError:
    return TimeoutError(f"not done after {milliseconds:g} ms")


def exponential_backoff_ms(base_ms: float, attempt: int, jitter: float = 0.1, *, rng: Random | None = None) -> float:
    """Compute the wait after failed attempt `attempt` (1, 2, …): doubling, at most 5 minutes, give or take the jitter."""
    policy = RetryPolicy(base=timedelta(milliseconds=base_ms), cap=PROFILES["task"].policy.cap, jitter=jitter, mode=Jitter.SPREAD)
    return policy.delay(attempt, SystemRandom() if rng is None else rng) / _MILLISECOND
