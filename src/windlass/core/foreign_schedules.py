"""Schedules as other systems describe them: Celery beat, APScheduler 3, Django-Q."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta, tzinfo
from typing import Any

from windlass.core.apscheduler_jobs import stored_job
from windlass.core.cadence import Cadence, Cron, Every, Recurrence, zone_of
from windlass.core.record import record
from windlass.errors import InvalidInput

_CRON_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_APSCHEDULER_FIELDS = ("minute", "hour", "day", "month", "day_of_week")
_ONCE = "enqueue what runs once with --run-at"
_SHORTEST_MONTH = 28
_IN_UTC = "its hours are in UTC here, there in TIME_ZONE: give that with --timezone"
_EITHER_DAY = "both day fields are set: there both had to fit, here either does"


@record
class FoundSchedule:
    """A schedule that can be made here; `review` lists what to check first."""

    name: str
    was: str
    """What the task was called there."""
    rule: Recurrence
    payload: Mapping[str, Any] = field(default_factory=dict)
    review: tuple[str, ...] = ()
    is_paused: bool = False

    @property
    def full_name(self) -> str:
        """Return the path of the task's function, which is what Django calls the task."""
        return self.was.replace(":", ".")

    @property
    def last_name(self) -> str:
        """Return the name of the task's function, which is what a task is called if it sets no name itself."""
        return self.full_name.rpartition(".")[2]


@record
class UnreadableSchedule:
    """One that cannot be imported, and why."""

    name: str
    reason: str


Schedules = list[FoundSchedule | UnreadableSchedule]


def _each(entries: Sequence[tuple[str, Any]], read: Callable[[str, Any], FoundSchedule]) -> Schedules:
    return list(_read_each(entries, read))


def _read_each(
    entries: Sequence[tuple[str, Any]], read: Callable[[str, Any], FoundSchedule]
) -> Iterator[FoundSchedule | UnreadableSchedule]:
    for name, entry in entries:
        try:
            yield read(name, entry)
        except InvalidInput as error:
            yield UnreadableSchedule(name, str(error))


def of_celery(beat_schedule: Mapping[str, Any], timezone: str = "UTC") -> Schedules:
    """Read a `beat_schedule`: Celery's own objects, or what JSON has for them, seconds or the fields of a crontab."""

    def read(name: str, entry: Any) -> FoundSchedule:
        if not isinstance(entry, Mapping):
            raise InvalidInput("entry", entry, "must be an object with `task` and `schedule`")
        cadence, notes = _celery_cadence(entry.get("schedule"))
        _refuse_places(entry.get("args"))
        review = [*notes, *(f"option {option} is left out" for option in sorted(entry.get("options") or {}))]
        rule = Recurrence(cadence=cadence, timezone=timezone)
        return FoundSchedule(f"celery:{name}", _text("task", entry.get("task")), rule, _named(entry.get("kwargs")), tuple(review))

    return _each(list(beat_schedule.items()), read)


def _celery_cadence(given: Any) -> tuple[Cadence, list[str]]:
    if (period := getattr(given, "run_every", given)) is not None and isinstance(period, timedelta | int | float):
        return _every(period), []
    fields = given if isinstance(given, Mapping) else {name: getattr(given, f"_orig_{name}", None) for name in _CRON_FIELDS}
    if isinstance(given, str):
        fields = dict(zip(_CRON_FIELDS, given.split(), strict=False))
    if unknown := sorted(fields.keys() - set(_CRON_FIELDS)):
        raise InvalidInput("schedule", given, f"has fields that no crontab has: {', '.join(unknown)}")
    if all(value is None for value in fields.values()):
        raise InvalidInput("schedule", given, "is neither an interval nor a crontab")
    return _cron([fields.get(name) for name in _CRON_FIELDS])


def of_apscheduler(jobs: Sequence[Any]) -> Schedules:
    """Read the jobs of a scheduler of APScheduler 3, as its `get_jobs()` returns them."""
    return _each([(str(job.id), job) for job in jobs], _apscheduler_job)


def of_apscheduler_store(rows: Sequence[tuple[str, bytes]]) -> Schedules:
    """Read the rows of a job store of APScheduler 3: the id of each job, and what it has pickled."""
    return _each(rows, lambda job_id, pickled: _apscheduler_job(job_id, stored_job(job_id, pickled)))


def _apscheduler_job(name: str, job: Any) -> FoundSchedule:
    cadence, notes = _trigger_cadence(job.trigger)
    _refuse_places(job.args)
    rule = Recurrence(
        cadence=cadence,
        timezone=str(getattr(job.trigger, "timezone", None) or "UTC"),
        end_at=getattr(job.trigger, "end_date", None),
        jitter=timedelta(seconds=getattr(job.trigger, "jitter", None) or 0),
    )
    is_paused = getattr(job, "next_run_time", True) is None
    review = (*notes, *(["it is paused there, and here until it is resumed"] if is_paused else []))
    return FoundSchedule(
        f"apscheduler:{name}", _text("func_ref", job.func_ref), rule, _named(job.kwargs), review, is_paused=is_paused
    )


def _trigger_cadence(trigger: Any) -> tuple[Cadence, list[str]]:
    if isinstance(period := getattr(trigger, "interval", None), timedelta):
        return _every(period), []
    if not (found := getattr(trigger, "fields", None)):
        raise InvalidInput("trigger", str(trigger), f"is neither an interval nor a cron trigger; {_ONCE}")
    # The last day of a month.
    fields = {one.name: "L" if str(one) == "last" else str(one) for one in found}
    if fields.get("second", "0") != "0" or fields.get("week", "*") != "*" or fields.get("year", "*") != "*":
        raise InvalidInput("trigger", str(trigger), "has seconds, weeks or years, which no crontab has")
    cadence, notes = _cron([fields.get(name) for name in _APSCHEDULER_FIELDS])
    if any(letter.isdigit() for letter in fields.get("day_of_week", "")):
        raise InvalidInput("day_of_week", fields["day_of_week"], "counts from Monday there, from Sunday here; write names")
    return cadence, notes


def of_django_q(rows: Sequence[Any], timezone: str | None = None) -> Schedules:
    """Read what `manage.py dumpdata django_q.schedule` writes; `timezone` is the TIME_ZONE there, which its hours are in."""
    zone = zone_of(timezone or "UTC")

    def read(name: str, row: Any) -> FoundSchedule:
        next_run = _moment(row.get("next_run"), zone)
        cadence, notes = _django_q_cadence(str(row.get("schedule_type")), row, next_run)
        if row.get("args"):
            _refuse_places(_literal("args", row["args"]))
        repeats = row.get("repeats", -1)
        rule = Recurrence(
            cadence=cadence,
            timezone=timezone or "UTC",
            max_runs=repeats if isinstance(repeats, int) and repeats > 0 else None,
        )
        if timezone is None and isinstance(cadence, Cron) and cadence.fields.split()[1] != "*":
            notes.append(_IN_UTC)
        review = (*notes, *([f"hook {row['hook']} is left out"] if row.get("hook") else []))
        return FoundSchedule(f"django-q:{name}", _text("func", row.get("func")), rule, _keywords(row.get("kwargs")), review)

    return _each([_django_q_row(place, row) for place, row in enumerate(rows, start=1)], read)


def _django_q_row(place: int, row: Any) -> tuple[str, dict[str, Any]]:
    fields = row.get("fields", row) if isinstance(row, Mapping) else {}
    key = row.get("pk", place) if isinstance(row, Mapping) else place
    return str(fields.get("name") or key), dict(fields)


def _django_q_cadence(kind: str, row: Mapping[str, Any], at: datetime) -> tuple[Cadence, list[str]]:
    if kind == "C":
        return _cron(_text("cron", row.get("cron")).split())
    if kind in {"I", "BW"}:
        return _every(timedelta(weeks=2) if kind == "BW" else timedelta(minutes=_minutes(row.get("minutes")))), []
    months = ",".join(str(month) for month in sorted((at.month - 1 + later) % 12 + 1 for later in (0, 3, 6, 9)))
    fields = {
        "H": "* * * *",
        "D": f"{at.hour} * * *",
        "W": f"{at.hour} * * {at.isoweekday() % 7}",
        "M": f"{at.hour} {at.day} * *",
        "Q": f"{at.hour} {at.day} {months} *",
        "Y": f"{at.hour} {at.day} {at.month} *",
    }
    if kind not in fields:
        raise InvalidInput("schedule_type", kind, f"does not come back; {_ONCE}")
    is_skipped = at.day > _SHORTEST_MONTH and kind in {"M", "Q"}
    return Cron(f"{at.minute} {fields[kind]}"), [f"day {at.day} is not in every month"] if is_skipped else []


def _minutes(given: Any) -> int:
    if not isinstance(given, int) or given < 1:
        raise InvalidInput("minutes", given, "must be a number of minutes")
    return given


def _cron(fields: Sequence[Any]) -> tuple[Cron, list[str]]:
    words = ["*" if one is None else str(one).replace(" ", "") for one in fields]
    return Cron(" ".join(words)), [_EITHER_DAY] if len(words) == len(_CRON_FIELDS) and words[2] != "*" != words[4] else []


def _every(given: timedelta | float) -> Every:
    return Every(given if isinstance(given, timedelta) else timedelta(seconds=given))


def _moment(given: Any, zone: tzinfo) -> datetime:
    try:
        found = datetime.fromisoformat(str(given))
    except ValueError:
        raise InvalidInput("next_run", given, "must be a time such as 2026-01-15T10:30:00Z") from None
    return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise InvalidInput(name, given, "must be a text")
    return given


def _named(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("kwargs", given, "must be an object")
    return dict(given)


def _refuse_places(args: Any) -> None:
    if args:
        raise InvalidInput("args", args, "are arguments by place; tasks here take them by name, so write them as kwargs")


def _keywords(given: Any) -> dict[str, Any]:
    """Read arguments as Django-Q keeps them: a dict in Python's spelling, or `a=1, b=2`."""
    if not given:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    text = str(given).strip()
    if text.startswith("{"):
        return _named(_literal("kwargs", text))
    try:
        called = ast.parse(f"dict({text})", mode="eval").body
        found = {str(one.arg): ast.literal_eval(one.value) for one in called.keywords} if isinstance(called, ast.Call) else {}
    except (SyntaxError, ValueError):
        raise InvalidInput("kwargs", given, "cannot be read") from None
    return found


def _literal(name: str, given: Any) -> Any:
    try:
        return ast.literal_eval(given) if isinstance(given, str) else given
    except (SyntaxError, ValueError):
        raise InvalidInput(name, given, "cannot be read") from None
