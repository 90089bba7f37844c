"""How long a failed job waits before it runs again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from random import Random
from types import MappingProxyType

from windlass.core.durations import parse_duration
from windlass.core.record import record
from windlass.errors import InvalidInput

_MICROSECOND = timedelta(microseconds=1)
# Doubling one microsecond this often passes the longest duration there is, so a larger exponent changes nothing.
_MOST_DOUBLINGS = 63


def _check(base: timedelta | None, cap: timedelta | None, jitter: float | None) -> None:
    if base is not None:
        _check_duration(base, "retry.base")
    if cap is not None:
        _check_duration(cap, "retry.cap")
    if jitter is not None:
        _check_jitter(jitter)


def _check_duration(value: timedelta, field: str) -> None:
    if not isinstance(value, timedelta):
        raise InvalidInput(field, value, "must be a timedelta")
    parse_duration(value, field=field)


def _check_jitter(value: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Written so that NaN, which compares false with everything, is refused too.
    if not is_number or not 0 <= value <= 1:
        raise InvalidInput("retry.jitter", value, "must be a fraction from 0 to 1")


class Jitter(Enum):
    """Which side of the computed delay chance may move it to; applied after the cap."""

    NONE = "none"
    SPREAD = "spread"
    ADD = "add"


@record(kw_only=True)
class RetryPolicy:
    """A doubling delay with a ceiling; `jitter` is a fraction of the delay, 0 to 1."""

    base: timedelta
    cap: timedelta
    jitter: float = 0.0
    mode: Jitter = Jitter.SPREAD

    def __post_init__(self) -> None:
        _check(self.base, self.cap, self.jitter)

    def delay(self, failures: int, rng: Random) -> timedelta:
        """Wait after failed run number `failures` (the first is 1, and less counts as 1)."""
        doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
        # Integers: a timedelta doubled this often overflows before the cap can hold it.
        wait = min((self.base // _MICROSECOND) << doublings, self.cap // _MICROSECOND)
        return timedelta(microseconds=round(wait * self._factor(rng)))

    def _factor(self, rng: Random) -> float:
        match self.mode:
            case Jitter.NONE:
                return 1.0
            case Jitter.SPREAD:
                return rng.uniform(1 - self.jitter, 1 + self.jitter)
            case Jitter.ADD:
                return rng.uniform(1, 1 + self.jitter)


@record(kw_only=True)
class Profile:
    """What a kind of job does when its enqueuer sets nothing; `max_attempts` counts runs."""

    policy: RetryPolicy
    max_attempts: int


DEFAULT_PROFILE = "task"

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "crawl": Profile(
            policy=RetryPolicy(base=timedelta(seconds=60), cap=timedelta(hours=24), jitter=0.2, mode=Jitter.SPREAD),
            max_attempts=4,
        ),
        "interval": Profile(
            policy=RetryPolicy(base=timedelta(seconds=60), cap=timedelta(hours=1), mode=Jitter.NONE),
            max_attempts=4,
        ),
        "task": Profile(
            policy=RetryPolicy(base=timedelta(seconds=1), cap=timedelta(minutes=5), jitter=0.1, mode=Jitter.SPREAD),
            max_attempts=3,
        ),
        "pull": Profile(
            policy=RetryPolicy(base=timedelta(seconds=30), cap=timedelta(hours=1), jitter=0.2, mode=Jitter.ADD),
            max_attempts=5,
        ),
    }
)


@record(kw_only=True)
class RetrySpec:
    """What a job's row keeps of its retry policy: a profile's name and only what the enqueuer has set."""

    profile: str = DEFAULT_PROFILE
    base: timedelta | None = None
    cap: timedelta | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.profile, str) or self.profile not in PROFILES:
            raise InvalidInput("retry.profile", self.profile, f"unknown profile, use one of {', '.join(PROFILES)}")
        _check(self.base, self.cap, self.jitter)

    def encode(self) -> str:
        """Write the stored form: the profile's name alone, or a JSON object with durations in microseconds."""
        given = {
            "base": None if self.base is None else self.base // _MICROSECOND,
            "cap": None if self.cap is None else self.cap // _MICROSECOND,
            "jitter": self.jitter,
        }
        kept = {name: value for name, value in given.items() if value is not None}
        return json.dumps({"profile": self.profile, **kept}, separators=(",", ":")) if kept else self.profile

    @staticmethod
    @lru_cache(maxsize=1024)
    def decode(text: str) -> RetrySpec:
        """Read the stored form; one shared object per text, as most rows hold the same few."""
        return _read(text) if text.startswith("{") else RetrySpec(profile=text)

    def resolve(self, profiles: Mapping[str, Profile] = PROFILES) -> RetryPolicy:
        """Fill what the enqueuer left open from the profiles as they are set now."""
        if self.profile not in profiles:
            raise InvalidInput("retry.profile", self.profile, f"unknown profile, use one of {', '.join(profiles)}")
        policy = profiles[self.profile].policy
        if self.base is None and self.cap is None and self.jitter is None:
            return policy
        return replace(
            policy,
            base=policy.base if self.base is None else self.base,
            cap=policy.cap if self.cap is None else self.cap,
            jitter=policy.jitter if self.jitter is None else self.jitter,
            # A jitter given to a profile that has none would otherwise be stored and never used.
            mode=Jitter.SPREAD if self.jitter is not None and policy.mode is Jitter.NONE else policy.mode,
        )


def most_attempts(given: int | None, retry: str, profiles: Mapping[str, Profile] = PROFILES) -> int:
    """Count the runs a job may have: what its enqueuer has set, else what its profile has now."""
    return profiles[RetrySpec.decode(retry).profile].max_attempts if given is None else given


def _read(text: str) -> RetrySpec:
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("retry", text, "is neither a profile's name nor a JSON object") from error
    unknown = stored.keys() - {"profile", "base", "cap", "jitter"}
    if unknown:
        raise InvalidInput("retry", text, f"has unknown fields: {', '.join(sorted(unknown))}")
    return RetrySpec(
        profile=stored.get("profile", DEFAULT_PROFILE),
        base=_read_microseconds(stored.get("base"), "retry.base"),
        cap=_read_microseconds(stored.get("cap"), "retry.cap"),
        jitter=stored.get("jitter"),
    )


def _read_microseconds(value: object, field: str) -> timedelta | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(field, value, "must be a whole number of microseconds")
    try:
        return timedelta(microseconds=value)
    except OverflowError as error:
        raise InvalidInput(field, value, "is too long") from error
