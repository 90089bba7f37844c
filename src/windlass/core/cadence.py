"""When a recurring job runs next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from windlass.core.checks import check_instant, check_range
from windlass.core.cron import check_cron, next_fire
from windlass.core.durations import format_duration, parse_duration
from windlass.errors import InvalidInput

MISSED_AFTER = timedelta(seconds=60)
SHORTEST = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_MOST_MISSED = 10_000

NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Misfire(StrEnum):
    """What becomes of slots that passed more than a minute ago."""

    ONCE = "once"
    SKIP = "skip"
    ALL = "all"


class OnExhausted(StrEnum):
    """What becomes of a recurring job whose attempts are used up."""

    FAIL = "fail"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed period, such as every 30 minutes."""

    period: timedelta

    def __post_init__(self) -> None:
        """Refuse a period shorter than a second."""
        if self.period < SHORTEST:
            raise InvalidInput("cadence", format_duration(self.period), "must be at least 1s")

    def __str__(self) -> str:
        """Spell the cadence as it is parsed."""
        return f"@every {format_duration(self.period)}"


@dataclass(frozen=True, slots=True)
class Cron:
    """Five cron fields or a name such as @daily."""

    expression: str

    def __post_init__(self) -> None:
        """Refuse what cron cannot read and what never fires."""
        check_cron(self.expression, self.fields)

    def __str__(self) -> str:
        """Spell the cadence as it is parsed."""
        return self.expression

    @property
    def fields(self) -> str:
        """The five fields that a name stands for."""
        return NAMED.get(self.expression, self.expression)

    def after(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """Find the first fire strictly after `moment`."""
        found = next_fire(self.fields, moment, zone)
        if found is None:
            raise InvalidInput("cadence", self.expression, "never fires again")
        return found


@dataclass(frozen=True, slots=True)
class ByHandler:
    """The handler says when it wants to run again; the fallback serves when it does not."""

    fallback: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        """Refuse a fallback that would make the job run without pause."""
        if self.fallback < SHORTEST:
            raise InvalidInput("cadence", format_duration(self.fallback), "must be at least 1s")

    def __str__(self) -> str:
        """Spell the cadence as it is parsed."""
        return f"@handler {format_duration(self.fallback)}"


Cadence = Every | Cron | ByHandler


def parse_cadence(text: str) -> Cadence:
    """Read a cadence: `@every 1h30m`, `@daily`, `@handler`, or five cron fields."""
    word, _, rest = text.strip().partition(" ")
    if word == "@every":
        return Every(parse_duration(rest.strip(), field="cadence"))
    if word == "@handler":
        return ByHandler(parse_duration(rest, field="cadence")) if rest else ByHandler()
    return Cron(text.strip())


@lru_cache(maxsize=512)
def zone_of(name: str) -> ZoneInfo:
    """Find an IANA time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput("timezone", name, "is not an IANA time zone") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A cadence with its options, as stored on the row."""

    cadence: Cadence
    timezone: str = "UTC"
    fixed_rate: bool = False
    misfire: Misfire = Misfire.ONCE
    misfire_max: int = 100
    on_exhausted: OnExhausted = OnExhausted.NEXT
    end_at: datetime | None = None
    max_runs: int | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown zone and limits that end before they begin."""
        zone_of(self.timezone)
        check_range("misfire_max", self.misfire_max, 1, _MOST_MISSED)
        if self.max_runs is not None:
            check_range("max_runs", self.max_runs, 1, 2**31 - 1)
        if self.end_at is not None:
            check_instant("end_at", self.end_at)
        for field, kind in _KINDS.items():
            if not isinstance(getattr(self, field), kind):
                raise InvalidInput(field, getattr(self, field), f"must be a {kind.__name__}")

    def encode(self) -> str:
        """Write the rule as the text the row keeps; options at their default are left out."""
        written: dict[str, object] = {"cadence": str(self.cadence)}
        for field, default in _DEFAULTS.items():
            value = getattr(self, field)
            if value != default:
                written[field] = (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value
        return json.dumps(written, separators=(",", ":"))

    @staticmethod
    @lru_cache(maxsize=4096)
    def decode(text: str) -> Recurrence:
        """Read what `encode` wrote."""
        try:
            return Recurrence(**_restored(json.loads(text)))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InvalidInput("cadence", text, f"cannot be read: {error}") from None

    def first(self, now: datetime) -> datetime:
        """Say when a job created or resumed at `now` runs first."""
        match self.cadence:
            case Every(period):
                return now + period
            case Cron() as cron:
                return cron.after(now, zone_of(self.timezone))
            case ByHandler():
                return now

    def next(self, slot_at: datetime | None, now: datetime) -> datetime:
        """Say when the job runs after a run that ended at `now` and was planned for `slot_at`."""
        match self.cadence:
            case Every(period) if self.fixed_rate and slot_at is not None:
                return self._next_fixed(slot_at, period, now)
            case Every(period):
                return now + period
            case Cron() as cron:
                # A run by hand came before the planned time: that time is still to come.
                return slot_at if slot_at is not None and slot_at > now else cron.after(now, zone_of(self.timezone))
            case ByHandler(fallback):
                return now + fallback

    def has_ended(self, next_at: datetime, completed_runs: int) -> bool:
        """Whether the job has no more runs to come."""
        return (self.end_at is not None and next_at > self.end_at) or (
            self.max_runs is not None and completed_runs >= self.max_runs
        )

    def _next_fixed(self, slot_at: datetime, period: timedelta, now: datetime) -> datetime:
        if slot_at > now:
            return slot_at
        following = slot_at + period
        if now - following <= MISSED_AFTER:
            return following
        latest = slot_at + period * ((now - slot_at) // period)
        match self.misfire:
            case Misfire.ONCE:
                return latest
            case Misfire.SKIP:
                return latest if now - latest <= MISSED_AFTER else latest + period
            case Misfire.ALL:
                return max(following, latest - period * (self.misfire_max - 1))


def _restored(stored: dict[str, Any]) -> dict[str, Any]:
    if "end_at" in stored:
        stored["end_at"] = EPOCH + stored["end_at"] * MICROSECOND
    for field, kind in _KINDS.items():
        if field in stored:
            stored[field] = kind(stored[field])
    return stored | {"cadence": parse_cadence(stored["cadence"])}


_KINDS: dict[str, type] = {"fixed_rate": bool, "misfire": Misfire, "on_exhausted": OnExhausted}
_DEFAULTS = {
    "timezone": "UTC",
    "fixed_rate": False,
    "misfire": Misfire.ONCE,
    "misfire_max": 100,
    "on_exhausted": OnExhausted.NEXT,
    "end_at": None,
    "max_runs": None,
}
