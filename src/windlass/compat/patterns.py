"""Seed 003's reliability patterns: breaker, timeout, backoff."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from random import Random, SystemRandom
from typing import Any, TypeVar

from windlass.app import Windlass
from windlass.core.retry import PROFILES, Jitter, RetryPolicy
from windlass.errors import InvalidInput

T = TypeVar("T")
_MILLISECOND = timedelta(milliseconds=1)


def with_circuit_breaker(db: Windlass, service: str, opts: Mapping[str, Any], work: Callable[[], T]) -> T:
    """Call `work` unless the service's breaker is open; opts: failure_threshold, open_duration_ms."""
    given = {name.replace("-", "_"): value for name, value in opts.items()}
    if not given.keys() <= {"failure_threshold", "open_duration_ms"}:
        raise InvalidInput("opts", opts, "has only failure_threshold and open_duration_ms")
    duration = given.get("open_duration_ms")
    open_for = None if duration is None else timedelta(milliseconds=duration)
    with db.breaker(service, threshold=given.get("failure_threshold"), open_for=open_for):
        return work()


def with_timeout(milliseconds: float, work: Callable[[], T]) -> T:
    """Call `work` and wait for it so long; raises TimeoutError then, and leaves its thread behind."""
    answer: Future[T] = Future()

    def call() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            answer.set_exception(error)

    # A daemon: a call that never returns must not keep the process from ending.
    threading.Thread(target=call, name="windlass-timeout", daemon=True).start()
    try:
        return answer.result(milliseconds / 1000)
    except TimeoutError as error:
        if answer.done():
            raise
        raise TimeoutError(f"not done after {milliseconds:g} ms") from error


def exponential_backoff_ms(base_ms: float, attempt: int, jitter: float = 0.1, *, rng: Random | None = None) -> float:
    """Compute the wait after failed attempt `attempt` (1, 2, …): doubling, at most 5 minutes, give or take the jitter."""
    policy = RetryPolicy(base=timedelta(milliseconds=base_ms), cap=PROFILES["task"].policy.cap, jitter=jitter, mode=Jitter.SPREAD)
    return policy.delay(attempt, SystemRandom() if rng is None else rng) / _MILLISECOND
