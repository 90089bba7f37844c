"""Settings that may change while everything runs: their bounds, and which source wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from windlass.core.checks import check_range
from windlass.core.record import record
from windlass.core.retry import PROFILES, Profile, RetrySpec
from windlass.errors import ConfigError, InvalidInput, nearest

Value = int | str
PULL = "pull"
_SECOND = timedelta(seconds=1)
_WHOLE_NUMBER = re.compile(r"\s*[0-9]{1,18}\s*", re.ASCII)


@record
class Number:
    """A whole number between two bounds."""

    default: int
    low: int
    high: int

    def read(self, name: str, value: object) -> int:
        """Take a number, or text that is one."""
        is_text = isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value)
        number = int(str(value)) if is_text else value
        check_range(name, number, self.low, self.high)
        return int(str(number))


@record
class Choice:
    """One of a fixed set of values."""

    default: str
    words: tuple[str, ...]

    def read(self, name: str, value: object) -> str:
        """Return the value; raises InvalidInput for any other."""
        if value not in self.words:
            raise InvalidInput(name, value, f"must be one of {', '.join(self.words)}")
        return str(value)


SETTINGS: Mapping[str, Number | Choice] = MappingProxyType(
    {
        "LEASE_SEC_DEFAULT": Number(180, 30, 600),
        "BACKOFF_BASE_SEC": Number(PROFILES[PULL].policy.base // _SECOND, 1, 3600),
        "BACKOFF_MAX_SEC": Number(PROFILES[PULL].policy.cap // _SECOND, 1, 86_400),
        "MAX_ATTEMPTS_DEFAULT": Number(PROFILES[PULL].max_attempts, 1, 100),
        "PICK_ORDER": Choice("fifo", ("fifo", "newest", "random", "fair")),
    }
)


class Origin(StrEnum):
    """The source of a setting's value; later members override earlier ones."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    DATABASE = "database"


@record
class StoredSetting:
    """A row of the settings table."""

    name: str
    value: str
    updated_by: str | None
    updated_at: datetime


class Effective(NamedTuple):
    """What a setting is at this moment."""

    name: str
    value: Value
    origin: Origin


def read_setting(name: str, value: object) -> Value:
    """Take a value for a setting, or refuse it, naming both."""
    if name not in SETTINGS:
        raise InvalidInput(
            str(name), value, f"is not a setting; use one of {', '.join(SETTINGS)}{nearest(str(name).upper(), SETTINGS)}"
        )
    return SETTINGS[name].read(name, value)


def from_environment(env: Mapping[str, str]) -> dict[str, Value]:
    """Pick the settings out of environment variables; raises ConfigError for a bad value."""
    try:
        return {name: read_setting(name, env[name]) for name in SETTINGS if env.get(name)}
    except InvalidInput as error:
        raise ConfigError(f"environment variable {error}") from error


def from_table(stored: Iterable[StoredSetting]) -> dict[str, Value]:
    """Pick what this version knows and can read out of the table; the rest is another version's."""
    found: dict[str, Value] = {}
    for row in stored:
        try:
            found[row.name] = read_setting(row.name, row.value)
        except InvalidInput:
            continue
    return found


def effective(stored: Iterable[StoredSetting], env: Mapping[str, str]) -> dict[str, Effective]:
    """Return the value of every setting: the table overrides the environment, the environment the default."""
    table, outside = from_table(stored), from_environment(env)
    return {name: _effective(name, table, outside) for name in SETTINGS}


def _effective(name: str, table: Mapping[str, Value], outside: Mapping[str, Value]) -> Effective:
    if name in table:
        return Effective(name, table[name], Origin.DATABASE)
    if name in outside:
        return Effective(name, outside[name], Origin.ENVIRONMENT)
    return Effective(name, SETTINGS[name].default, Origin.DEFAULT)


def profiles_with(given: Mapping[str, Value], profiles: Mapping[str, Profile] = PROFILES) -> Mapping[str, Profile]:
    """Replace what these settings hold about the retries of pulled jobs; what they leave open stays as it is."""
    old = profiles.get(PULL, PROFILES[PULL])
    policy = replace(
        old.policy,
        base=_seconds(given.get("BACKOFF_BASE_SEC"), old.policy.base),
        cap=_seconds(given.get("BACKOFF_MAX_SEC"), old.policy.cap),
    )
    most = int(given.get("MAX_ATTEMPTS_DEFAULT", old.max_attempts))
    return {**profiles, PULL: Profile(policy=policy, max_attempts=most)}


def _seconds(value: Value | None, otherwise: timedelta) -> timedelta:
    return otherwise if value is None else timedelta(seconds=int(value))


def is_pulled(retry: str) -> bool:
    """Whether a row's retry rule depends on the settings; one that cannot be read does not."""
    try:
        return RetrySpec.decode(retry).profile == PULL
    except InvalidInput:
        return False
