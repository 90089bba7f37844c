"""`windlass import celery-beat`, `apscheduler` and `django-q`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.filter import JobFilter
from windlass.core.known_task import DeclaredTask
from windlass.core.page import JobQuery

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@BOTH
def test_a_beat_schedule_is_shown_first_then_made_once(windlass: Command, app: Windlass, tmp_path: Path) -> None:
    file = tmp_path / "beat.json"
    entries: dict[str, Any] = {
        "tidy": {"task": "shop.tasks.tidy", "schedule": {"minute": "30", "hour": "3"}, "kwargs": {"deep": True}},
        "placed": {"task": "shop.tasks.add", "schedule": 30, "args": [1]},
    }
    file.write_text(json.dumps(entries))
    told = windlass("import", "celery-beat", str(file), "--timezone", "Europe/Berlin", code=3).output
    assert "at 03:30 (Europe/Berlin)" in told
    assert "look at celery:tidy: no process has declared the task 'tidy'" in told
    assert "placed is left out: args" in told
    assert "nothing was stored" in told
    assert app.list_sync().total == 0
    for status in ("created", "unchanged"):
        assert status in windlass("import", "celery-beat", str(file), "--lane", "slow", "--apply", code=3).output
    [made] = app.list_sync(JobQuery(filter=JobFilter(is_recurring=True))).jobs
    assert (made.name, made.task, made.lane, made.payload) == ("celery:tidy", "tidy", "slow", {"deep": True})


@BOTH
def test_a_task_has_the_name_that_a_process_has_declared(windlass: Command, app: Windlass, tmp_path: Path) -> None:
    run(run(app.blocking_store()).tasks.declare([DeclaredTask(name="shop.tasks.tidy")]))
    file = tmp_path / "beat.json"
    names = ("shop.tasks.tidy", "shop.tasks.report")
    file.write_text(json.dumps({name: {"task": name, "schedule": 30} for name in names}))
    for typed, expected in (
        ((), ["shop.tasks.tidy", "report"]),
        (("--full-names",), [*names]),
        (("--last-names",), ["tidy", "report"]),
    ):
        rows = json.loads(windlass("import", "celery-beat", str(file), *typed, "--json").stdout)
        assert [row["task"] for row in rows] == expected
        assert [bool(row["review"]) for row in rows] == [name != "shop.tasks.tidy" for name in expected]


def test_objects_of_a_module_are_read(windlass: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old_beat_settings.py").write_text(
        "from datetime import timedelta\n"
        "from types import SimpleNamespace as Made\n"
        "beat = {'tidy': {'task': 'a.tidy', 'schedule': timedelta(minutes=5)}}\n"
        "app = Made(conf=Made(beat_schedule=beat, timezone='Asia/Tokyo'))\n"
        "job = Made(id='n', func_ref='a:tidy', trigger=Made(interval=timedelta(hours=1)), args=(), kwargs={})\n"
        "scheduler = Made(get_jobs=lambda: [job])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    [row] = json.loads(windlass("import", "celery-beat", "old_beat_settings:app", "--json").stdout)
    assert (row["task"], row["when"], row["status"]) == ("tidy", "every 5 minutes", "new")
    [row] = json.loads(windlass("import", "apscheduler", "old_beat_settings:scheduler", "--json").stdout)
    assert (row["name"], row["when"]) == ("apscheduler:n", "every hour")
    assert "is no scheduler" in windlass("import", "apscheduler", "old_beat_settings:beat", code=2).stderr


def test_a_dump_of_django_q_is_read(windlass: Command, tmp_path: Path) -> None:
    file = tmp_path / "schedules.json"
    fields = {"name": "report", "func": "shop.tasks.report", "schedule_type": "D", "next_run": "2026-01-15T10:30:00Z"}
    file.write_text(json.dumps([{"model": "django_q.schedule", "pk": 1, "fields": fields}]))
    told = windlass("import", "django-q", str(file), "--apply").output
    assert "at 10:30 (UTC)" in told
    assert "look at django-q:report: its hours are in UTC here, there in TIME_ZONE" in told
    told = windlass("import", "django-q", str(file), "--timezone", "Europe/Paris").output
    assert "at 11:30 (Europe/Paris)" in told
    assert "TIME_ZONE" not in told
    assert "is not an IANA time zone" in windlass("import", "django-q", str(file), "--timezone", "Paris", code=2).stderr
    file.write_text("{}")
    assert "must be a list" in windlass("import", "django-q", str(file), code=2).stderr
