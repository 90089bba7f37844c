"""Schedules of Celery beat, APScheduler and Django-Q, read into ours."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from windlass.core.foreign_schedules import FoundSchedule, UnreadableSchedule, of_apscheduler, of_celery, of_django_q


def found(schedules: list[FoundSchedule | UnreadableSchedule]) -> FoundSchedule:
    [one] = schedules
    assert isinstance(one, FoundSchedule), one
    return one


def reason(schedules: list[FoundSchedule | UnreadableSchedule]) -> str:
    [one] = schedules
    assert isinstance(one, UnreadableSchedule), one
    return one.reason


CRONTAB = SimpleNamespace(
    _orig_minute=30, _orig_hour="*/2", _orig_day_of_week="mon-fri", _orig_day_of_month="*", _orig_month_of_year="*"
)


@pytest.mark.parametrize(
    ("schedule", "cadence"),
    [
        (30.0, "@every 30s"),
        (timedelta(minutes=5), "@every 5m"),
        (SimpleNamespace(run_every=timedelta(hours=1)), "@every 1h"),
        (CRONTAB, "30 */2 * * mon-fri"),
        ({"minute": "0", "hour": 4}, "0 4 * * *"),
        ("*/10 * * * *", "*/10 * * * *"),
    ],
)
def test_a_schedule_of_celery(schedule: Any, cadence: str) -> None:
    one = found(of_celery({"tidy": {"task": "shop.tasks.tidy", "schedule": schedule, "kwargs": {"deep": True}}}, "Europe/Berlin"))
    assert (str(one.rule.cadence), one.rule.timezone) == (cadence, "Europe/Berlin")
    assert (one.name, one.last_name, one.full_name, one.payload) == ("celery:tidy", "tidy", "shop.tasks.tidy", {"deep": True})
    assert one.review == ()


def test_what_differs_from_celery_is_to_be_looked_at() -> None:
    entry = {
        "task": "a.b",
        "schedule": {"minute": 0, "hour": 0, "day_of_month": 1, "day_of_week": "mon"},
        "options": {"queue": "x"},
    }
    both, queue = found(of_celery({"odd": entry})).review
    assert "here either does" in both
    assert queue == "option queue is left out"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"task": "a.b", "schedule": 5, "args": [1, 2]}, "args: are arguments by place"),
        ({"task": "a.b", "schedule": {"event": "sunrise"}}, "schedule: has fields that no crontab has: event"),
        ({"task": "a.b", "schedule": object()}, "schedule: is neither an interval nor a crontab"),
        ({"task": "a.b", "schedule": {"minute": 77}}, "field 1 (minute) cannot be '77'"),
        ({"schedule": 5}, "task: must be a text"),
        ("text", "entry: must be an object"),
    ],
)
def test_what_cannot_be_taken_from_celery_is_named(entry: Any, told: str) -> None:
    assert told in reason(of_celery({"odd": entry}))


class Field(SimpleNamespace):
    """A field of APScheduler's cron trigger, which is written by `str`."""

    def __str__(self) -> str:
        return str(self.text)


def a_job(trigger: Any, **changes: Any) -> SimpleNamespace:
    usual = {"id": "nightly", "func_ref": "shop.tasks:report", "args": (), "kwargs": {"to": "ann"}, "next_run_time": 1}
    return SimpleNamespace(trigger=trigger, **usual | changes)


def cron_trigger(**fields: str) -> SimpleNamespace:
    usual = {"year": "*", "month": "*", "day": "*", "week": "*", "day_of_week": "*", "hour": "*", "minute": "0", "second": "0"}
    made = [Field(name=name, text=text) for name, text in (usual | fields).items()]
    return SimpleNamespace(fields=made, timezone="Europe/Paris", end_date=None)


def test_a_job_of_apscheduler() -> None:
    one = found(of_apscheduler([a_job(cron_trigger(hour="3", day_of_week="mon-fri"))]))
    assert (str(one.rule.cadence), one.rule.timezone, one.full_name) == ("0 3 * * mon-fri", "Europe/Paris", "shop.tasks.report")
    assert not one.is_paused
    every = found(of_apscheduler([a_job(SimpleNamespace(interval=timedelta(minutes=2), timezone="UTC"), next_run_time=None)]))
    assert (str(every.rule.cadence), every.is_paused) == ("@every 2m", True)
    assert every.review == ("it is paused there, and here until it is resumed",)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (a_job(cron_trigger(second="*/5")), "trigger: has seconds"),
        (a_job(cron_trigger(day_of_week="0-4")), "day_of_week: counts from Monday there"),
        (a_job(SimpleNamespace(run_date=1)), "trigger: is neither an interval nor a cron trigger"),
        (a_job(cron_trigger(), args=(1,)), "args: are arguments by place"),
    ],
)
def test_what_cannot_be_taken_from_apscheduler_is_named(job: Any, told: str) -> None:
    assert told in reason(of_apscheduler([job]))


def a_row(**fields: Any) -> dict[str, Any]:
    usual = {"name": "report", "func": "shop.tasks.report", "repeats": -1, "next_run": "2026-01-31T10:30:00+02:00"}
    return {"model": "django_q.schedule", "pk": 4, "fields": usual | fields}


@pytest.mark.parametrize(
    ("fields", "cadence", "has_hours"),
    [
        ({"schedule_type": "I", "minutes": 5}, "@every 5m", False),
        ({"schedule_type": "H"}, "30 * * * *", False),
        ({"schedule_type": "D"}, "30 8 * * *", True),
        ({"schedule_type": "W"}, "30 8 * * 6", True),
        ({"schedule_type": "M"}, "30 8 31 * *", True),
        ({"schedule_type": "Q"}, "30 8 31 1,4,7,10 *", True),
        ({"schedule_type": "Y"}, "30 8 31 1 *", True),
        ({"schedule_type": "C", "cron": "*/5 * * * *"}, "*/5 * * * *", False),
        ({"schedule_type": "C", "cron": "0 7 * * *"}, "0 7 * * *", True),
    ],
)
def test_a_schedule_of_django_q(fields: dict[str, Any], cadence: str, *, has_hours: bool) -> None:
    one = found(of_django_q([a_row(**fields)]))
    assert (str(one.rule.cadence), one.rule.timezone, one.name) == (cadence, "UTC", "django-q:report")
    assert (one.last_name, one.full_name) == ("report", "shop.tasks.report")
    skipped = ["day 31 is not in every month"] if fields["schedule_type"] in "MQ" else []
    in_utc = ["its hours are in UTC here, there in TIME_ZONE: give that with --timezone"] if has_hours else []
    assert list(one.review) == [*skipped, *in_utc]


@pytest.mark.parametrize(
    ("fields", "cadence"),
    [
        ({"schedule_type": "D"}, "30 9 * * *"),
        ({"schedule_type": "D", "next_run": "2026-07-01T10:30:00"}, "30 10 * * *"),
        ({"schedule_type": "W", "next_run": "2026-01-31T23:30:00Z"}, "30 0 * * 0"),
        ({"schedule_type": "C", "cron": "0 7 * * *"}, "0 7 * * *"),
    ],
)
def test_the_hours_of_django_q_are_those_of_its_time_zone(fields: dict[str, Any], cadence: str) -> None:
    one = found(of_django_q([a_row(**fields)], "Europe/Paris"))
    assert (str(one.rule.cadence), one.rule.timezone, one.review) == (cadence, "Europe/Paris", ())


def test_the_arguments_of_django_q_are_read_in_both_spellings() -> None:
    for kwargs in ("{'to': 'ann', 'n': 2}", "to='ann', n=2", {"to": "ann", "n": 2}):
        assert found(of_django_q([a_row(schedule_type="D", kwargs=kwargs)])).payload == {"to": "ann", "n": 2}
    assert found(of_django_q([a_row(schedule_type="D", repeats=3, hook="shop.done")])).rule.max_runs == 3


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"schedule_type": "O"}, "schedule_type: does not come back"),
        ({"schedule_type": "I", "minutes": None}, "minutes: must be a number of minutes"),
        ({"schedule_type": "D", "args": "(1, 2)"}, "args: are arguments by place"),
        ({"schedule_type": "D", "kwargs": "to=__import__('os')"}, "kwargs: cannot be read"),
        ({"schedule_type": "D", "next_run": "soon"}, "next_run: must be a time"),
    ],
)
def test_what_cannot_be_taken_from_django_q_is_named(fields: dict[str, Any], told: str) -> None:
    assert told in reason(of_django_q([a_row(**fields)]))
