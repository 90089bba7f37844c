"""When a recurring job runs next."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from windlass.core.checks import check_instant, check_range, check_wait
from windlass.core.cron import check_cron, latest_fires, next_fire, short_names
from windlass.core.durations import format_duration, parse_duration
from windlass.core.record import record
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from random import Random

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
    """What is done about slots that passed more than a minute ago."""

    ONCE = "once"
    SKIP = "skip"
    ALL = "all"


class Overlap(StrEnum):
    """What a template does while an earlier job of its own is unfinished."""

    ALLOW = "allow"
    SKIP = "skip"
    CANCEL_PREVIOUS = "cancel_previous"


class OnExhausted(StrEnum):
    """What is done with a recurring job whose attempts are used up."""

    FAIL = "fail"
    NEXT = "next"


@record
class Every:
    """A fixed period, such as every 30 minutes."""

    period: timedelta
    spelled: str = dataclasses.field(default="", compare=False, repr=False, kw_only=True)
    """The text it was read from, as in `90m`; it is shown like that and has no other effect."""

    def __post_init__(self) -> None:
        """Refuse a period shorter than a second."""
        if self.period < SHORTEST:
            raise InvalidInput("cadence", format_duration(self.period), "must be at least 1s")

    def __str__(self) -> str:
        """Spell the cadence as it is parsed."""
        return f"@every {self.spelled or format_duration(self.period)}"


@record
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
        """The five fields that the expression stands for, in short names."""
        return short_names(NAMED.get(self.expression, self.expression))

    def after(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """Find the first fire strictly after `moment`."""
        found = next_fire(self.fields, moment, zone)
        if found is None:
            raise InvalidInput("cadence", self.expression, "never fires again")
        return found


@record
class ByHandler:
    """The handler sets when it runs again; the fallback serves when it does not."""

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
        return Every(parse_duration(rest.strip(), field="cadence"), spelled=rest.strip())
    if word == "@handler":
        return ByHandler(parse_duration(rest, field="cadence")) if rest else ByHandler()
    if word.startswith("@") and text.strip() not in NAMED:
        raise InvalidInput("cadence", text, f"{word!r} is none of @every, @handler, {', '.join(NAMED)}")
    return Cron(text.strip())


@lru_cache(maxsize=512)
def zone_of(name: str) -> ZoneInfo:
    """Find an IANA time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput("timezone", name, "is not an IANA time zone") from None


@record(kw_only=True)
class Recurrence:
    """A cadence with its options, as stored on the row."""

    cadence: Cadence
    timezone: str = "UTC"
    fixed_rate: bool = False
    misfire: Misfire = Misfire.ONCE
    misfire_max: int = 100
    on_exhausted: OnExhausted = OnExhausted.NEXT
    start_at: datetime | None = None
    """The first slot, and the anchor of those that follow."""
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter: timedelta = timedelta()
    """A run starts up to this much after its slot; slots themselves never move."""
    overlap: Overlap = Overlap.ALLOW
    """For templates only: a job that comes back is never beside itself."""
    unit: str | None = None
    """What the interval was given in, to be shown as it was given."""

    def __post_init__(self) -> None:
        """Refuse an unknown zone and limits that end before they begin."""
        zone_of(self.timezone)
        check_wait("jitter", self.jitter, least=timedelta())
        check_range("misfire_max", self.misfire_max, 1, _MOST_MISSED)
        if self.max_runs is not None:
            check_range("max_runs", self.max_runs, 1, 2**31 - 1)
        for field in _INSTANTS:
            if getattr(self, field) is not None:
                check_instant(field, getattr(self, field))
        if self.start_at is not None and self.end_at is not None and self.start_at > self.end_at:
            raise InvalidInput("end_at", self.end_at, "comes before start_at")
        for field, kind in _KINDS.items():
            if not isinstance(getattr(self, field), kind):
                raise InvalidInput(field, getattr(self, field), f"must be a {kind.__name__}")

    def encode(self) -> str:
        """Write the rule as the text the row keeps; options at their default are left out."""
        written: dict[str, object] = {"cadence": str(self.cadence)}
        for field, default in _DEFAULTS.items():
            value = getattr(self, field)
            if value != default:
                written[field] = _plain(value)
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
        """Return which slot a job created or resumed at `now` waits for."""
        match self.cadence:
            case Every(period):
                return now + period if self.start_at is None else _on_grid(self.start_at, period, now)
            case Cron() as cron:
                return cron.after(self._since_start(now), zone_of(self.timezone))
            case ByHandler():
                return now if self.start_at is None else max(now, self.start_at)

    def next(self, slot_at: datetime | None, now: datetime) -> datetime:
        """Return which slot follows a run that ended at `now` and was planned for `slot_at`."""
        match self.cadence:
            case Every(period) if self.fixed_rate and slot_at is not None:
                return self._next_fixed(slot_at, period, now)
            case Every(period):
                return self._not_before_start(now, now + period)
            case Cron() as cron:
                return self._next_cron(cron, slot_at, now)
            case ByHandler(fallback):
                return self._not_before_start(now, now + fallback)

    def served(self, slot_at: datetime | None, claimed_at: datetime) -> datetime | None:
        """Return up to which slot a run counts that was claimed at `claimed_at`: one late run stands for all it is late for."""
        match self.cadence:
            case Every(period) if self.fixed_rate and self.misfire is Misfire.ONCE and slot_at is not None:
                is_late = claimed_at - slot_at - period > MISSED_AFTER
                return slot_at + period * ((claimed_at - slot_at) // period) if is_late else slot_at
            case _:
                return slot_at

    def caught_up(self, slot_at: datetime, now: datetime) -> datetime:
        """Return which slot a job turns to that still waits for `slot_at`, long past, at `now`."""
        match self.misfire:
            case Misfire.ONCE:
                return slot_at
            case Misfire.SKIP:
                return self._first_not_missed(slot_at, now)
            case Misfire.ALL:
                return self._first_caught_up(slot_at, now)

    def run_time(self, slot_at: datetime, rng: Random) -> datetime:
        """Return when the run of a slot starts."""
        return slot_at + self.jitter * rng.random() if self.jitter else slot_at

    def has_ended(self, next_at: datetime, completed_runs: int) -> bool:
        """Whether the job has no more runs to come."""
        return (self.end_at is not None and next_at > self.end_at) or (
            self.max_runs is not None and completed_runs >= self.max_runs
        )

    def keeps_time_of(self, other: Recurrence) -> bool:
        """Whether a job whose rule was `other` may keep its next slot under this one."""
        return all(getattr(self, field) == getattr(other, field) for field in _TIMING)

    def _since_start(self, now: datetime) -> datetime:
        return now if self.start_at is None else max(now, self.start_at - MICROSECOND)

    def _not_before_start(self, now: datetime, next_at: datetime) -> datetime:
        return next_at if self.start_at is None or self.start_at <= now else self.start_at

    def _next_cron(self, cron: Cron, slot_at: datetime | None, now: datetime) -> datetime:
        if slot_at is None or self.misfire is not Misfire.ALL:
            # A run by hand came before the planned time: that time is still to come.
            return (
                slot_at if slot_at is not None and slot_at > now else cron.after(self._since_start(now), zone_of(self.timezone))
            )
        if slot_at > now:
            return slot_at
        following = cron.after(slot_at, zone_of(self.timezone))
        return following if now - following <= MISSED_AFTER else self._first_caught_up(following, now)

    def _next_fixed(self, slot_at: datetime, period: timedelta, now: datetime) -> datetime:
        if slot_at > now:
            return slot_at
        following = slot_at + period
        if now - following <= MISSED_AFTER:
            return following
        if self.misfire is Misfire.ONCE:
            return slot_at + period * ((now - slot_at) // period)
        return self.caught_up(following, now)

    def _first_not_missed(self, slot_at: datetime, now: datetime) -> datetime:
        missed_until = now - MISSED_AFTER - MICROSECOND
        match self.cadence:
            case Every(period):
                return _on_grid(slot_at, period, missed_until)
            case Cron() as cron:
                return cron.after(max(slot_at, missed_until), zone_of(self.timezone))
            case ByHandler(fallback):
                return now + fallback

    def _first_caught_up(self, slot_at: datetime, now: datetime) -> datetime:
        match self.cadence:
            case Every(period) if self.fixed_rate:
                return max(slot_at, slot_at + period * ((now - slot_at) // period - self.misfire_max + 1))
            case Cron(fields=fields):
                return latest_fires(fields, slot_at, now, zone_of(self.timezone), most=self.misfire_max)[0]
            case _:
                # Counted from the end of each run, no other slot has been missed.
                return slot_at


def _on_grid(anchor: datetime, period: timedelta, now: datetime) -> datetime:
    """Find the first of anchor, anchor + period, … that is after `now`."""
    return anchor if anchor > now else anchor + period * ((now - anchor) // period + 1)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return (value - EPOCH) // MICROSECOND
    return format_duration(value) if isinstance(value, timedelta) else value


def _restored(stored: dict[str, Any]) -> dict[str, Any]:
    for field in _INSTANTS:
        if field in stored:
            stored[field] = EPOCH + stored[field] * MICROSECOND
    if "jitter" in stored:
        stored["jitter"] = parse_duration(stored["jitter"], field="jitter")
    for field, kind in _KINDS.items():
        if field in stored:
            stored[field] = kind(stored[field])
    return stored | {"cadence": parse_cadence(stored["cadence"])}


_INSTANTS = ("start_at", "end_at")
_TIMING = ("cadence", "timezone", "fixed_rate", "start_at")
_KINDS: dict[str, type] = {"fixed_rate": bool, "misfire": Misfire, "on_exhausted": OnExhausted, "overlap": Overlap}
_DEFAULTS = {
    "timezone": "UTC",
    "fixed_rate": False,
    "misfire": Misfire.ONCE,
    "misfire_max": 100,
    "on_exhausted": OnExhausted.NEXT,
    "start_at": None,
    "end_at": None,
    "max_runs": None,
    "jitter": timedelta(),
    "overlap": Overlap.ALLOW,
    "unit": None,
}
