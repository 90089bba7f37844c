"""Which cron expressions are plain intervals (the interval scheduler's migration)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from windlass.core.cadence import MICROSECOND, Cron, Every, Recurrence, zone_of
from windlass.core.job import Job, JobState, WaitReason
from windlass.core.payload import encode_object
from windlass.core.record import record
from windlass.errors import InvalidInput

MARK = "windlass_cron"
"""The key of a job's metadata that remembers what it was converted from."""

_WEEK = timedelta(days=7)
_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
_UTC = ZoneInfo("UTC")
_LOOK_AHEAD = 5 * 366
"""How many days a zone is watched for changes of its clock."""


@record
class Even:
    """An expression that fires at equal distances for ever, and the rule that does the same."""

    rule: Recurrence

    @property
    def period(self) -> timedelta:
        """The distance."""
        assert isinstance(self.rule.cadence, Every)  # noqa: S101 - made so below
        return self.rule.cadence.period


@record
class Review:
    """An expression that stays, and why."""

    reason: str


Verdict = Even | Review


def judge(rule: Recurrence, state: JobState, slot_at: datetime | None) -> Verdict | None:
    """Return the new rule of a job; nothing when it has no cron fields.

    A converted job counts on from `slot_at`, its next planned time, so that time has to be one of its cron times.
    """
    if not isinstance(rule.cadence, Cron) or rule.cadence.expression.startswith("@"):
        return None
    verdict = _judge_fields(rule, rule.cadence, slot_at or _MONDAY)
    if isinstance(verdict, Review):
        return verdict
    if state is JobState.PAUSED:
        return Review("it is paused, and an interval counts anew when it is resumed: resume it first")
    if slot_at is None or rule.cadence.after(slot_at - MICROSECOND, zone_of(rule.timezone)) != slot_at:
        return Review("its next run is not at one of its cron times: let it run once first")
    return verdict


def _judge_fields(rule: Recurrence, cron: Cron, around: datetime) -> Verdict:
    minute, hour, day, month, weekday = cron.fields.upper().split()
    # `5#1` and `5L` are days of the month by another name.
    if day != "*" or month != "*" or {"#", "L"} & set(weekday):
        return Review("days of the month and months are not evenly spaced")
    fires = list(_week_of(cron))
    distances = {later - earlier for earlier, later in pairwise([*fires, fires[0] + _WEEK])}
    if len(distances) > 1:
        shortest, longest = min(distances), max(distances)
        return Review(f"its runs are not evenly spaced: between {_minutes(shortest)} and {_minutes(longest)} apart")
    [period] = distances
    # A job at fixed hours follows the wall clock; one in every hour does not care, if the clock moves by whole periods.
    is_wild = hour.startswith("*") or minute.startswith("*")
    for shift in _shifts(zone_of(rule.timezone), around):
        if not is_wild or shift % period:
            return Review(f"{rule.timezone} changes its clock, and an interval does not follow it")
    return Even(replace(rule, cadence=Every(period), fixed_rate=True))


def _week_of(cron: Cron) -> Iterator[datetime]:
    """Yield the fires of a week without a place; a rule that does not depend on the date is the same in every week."""
    moment = _MONDAY - MICROSECOND
    while (moment := cron.after(moment, _UTC)) < _MONDAY + _WEEK:
        yield moment


def _shifts(zone: ZoneInfo, around: datetime) -> set[timedelta]:
    """Find by how much a zone's clock moves in the years to come."""
    offsets = [(around + timedelta(days=day)).astimezone(zone).utcoffset() or timedelta() for day in range(_LOOK_AHEAD)]
    return {abs(later - earlier) for earlier, later in pairwise(offsets)} - {timedelta()}


def _minutes(distance: timedelta) -> str:
    return f"{distance // timedelta(minutes=1)} min"


@record
class Conversion:
    """The conversion of one job: a new rule, or the reason why it keeps the one it has."""

    job_id: int
    name: str | None
    task: str
    was: Recurrence
    becomes: Recurrence | None = None
    reason: str | None = None
    metadata: str | None = None
    """The job's metadata afterwards, where the rule changes."""
    next_at: datetime | None = None
    """Its next time, where that changes; otherwise it stays."""


def convert(job: Job) -> Conversion | None:
    """Return the conversion of a job; nothing when it has no cron fields or cannot be read."""
    was = _rule_of(job.cadence)
    verdict = None if was is None else judge(was, job.state, job.slot_at)
    if was is None or verdict is None:
        return None
    plain = Conversion(job.id, job.name, job.task, was)
    if isinstance(verdict, Review):
        return replace(plain, reason=verdict.reason)
    kept = job.metadata
    mark = {"was": was.encode(), "became": verdict.rule.encode(), "bare": job.metadata_json is None}
    return replace(plain, becomes=verdict.rule, metadata=encode_object({**kept, MARK: mark}, field="metadata"))


def undo(job: Job, now: datetime) -> Conversion | None:
    """Return how a converted job goes back; nothing when it was never converted. One that was edited since keeps what it has."""
    kept = job.metadata
    mark, rule = kept.pop(MARK, None), _rule_of(job.cadence)
    if not isinstance(mark, dict) or rule is None:
        return None
    plain = Conversion(job.id, job.name, job.task, rule)
    was, became = _rule_of(mark.get("was")), _rule_of(mark.get("became"))
    if was is None or not isinstance(was.cadence, Cron):
        return replace(plain, reason="what it was converted from cannot be read any more")
    if rule != became:
        return replace(plain, reason="its cadence was edited since it was converted")
    metadata = None if mark.get("bare") and not kept else encode_object(kept, field="metadata")
    return replace(plain, becomes=was, metadata=metadata, next_at=_back_in_step(job, was, was.cadence, now))


def _back_in_step(job: Job, rule: Recurrence, cron: Cron, now: datetime) -> datetime | None:
    """Find the next cron time for a job whose interval was begun anew at some other time, as a resumed one's is."""
    if job.state is not JobState.SCHEDULED or job.wait_reason is not WaitReason.RECURRENCE or job.slot_at is None:
        return None
    zone = zone_of(rule.timezone)
    return None if cron.after(job.slot_at - MICROSECOND, zone) == job.slot_at else cron.after(now, zone)


def _rule_of(text: object) -> Recurrence | None:
    try:
        return Recurrence.decode(text) if isinstance(text, str) else None
    except InvalidInput:
        return None
