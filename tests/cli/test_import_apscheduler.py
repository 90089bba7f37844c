"""`windlass import apscheduler URL` reads the job store of a real APScheduler, and runs nothing that is in it."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy.pool import NullPool

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.foreign_schedules import FoundSchedule, of_apscheduler, of_apscheduler_store

SHOP = "tests.cli.test_import_apscheduler"


def report(to: str = "ann") -> None: ...


class Order:
    """Something of the application's own that is an argument of a job."""


class Trap:
    """Runs a command in the process that unpickles it as usual."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("trapped",)


@contextmanager
def scheduler_on(url: str, **options: Any) -> Iterator[Any]:
    """Start a scheduler that fires nothing, with a store at the URL."""
    # Its end leaves a pool's connection open.
    store = SQLAlchemyJobStore(url=url, engine_options={"poolclass": NullPool}, **options)
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone="Europe/Berlin")
    scheduler.start(paused=True)
    try:
        yield scheduler
    finally:
        scheduler.shutdown()


def add_jobs(scheduler: Any) -> None:
    def add(job_id: str, kind: str, **options: Any) -> Any:
        return scheduler.add_job(f"{SHOP}:report", kind, id=job_id, **options)

    add("often", "interval", minutes=5, kwargs={"to": "bob"}, jitter=30)
    add("until", "interval", hours=1, end_date=datetime(2030, 1, 1, tzinfo=UTC))
    add("workdays", "cron", hour="*/2", minute="0,30", day_of_week="mon-fri")
    add("seasons", "cron", day="last", hour="3-5/2", month="jan-mar,oct", timezone="UTC")
    add("asleep", "cron", hour=4).pause()
    add("once", "date", run_date=datetime(2030, 1, 1, tzinfo=UTC))
    add("third", "cron", day="3rd fri")
    add("placed", "interval", days=1, args=["eve"])
    add("own", "interval", days=1, kwargs={"to": Order()})


def rows_of(url: str) -> list[tuple[str, bytes]]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return connection.execute("select id, job_state from apscheduler_jobs").fetchall()


@pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
def test_a_job_store_becomes_schedules(windlass: Command, app: Windlass, url: str, tmp_path: Path) -> None:
    store = url.replace("postgresql://", "postgresql+psycopg://") if "postgres" in url else f"sqlite:///{tmp_path / 'store.db'}"
    with scheduler_on(store) as scheduler:
        add_jobs(scheduler)
    rows: dict[str, Any] = {}
    for status in ("created", "unchanged"):
        rows = {
            row["name"]: row for row in json.loads(windlass("import", "apscheduler", store, "--apply", "--json", code=3).stdout)
        }
        good = {name for name, row in rows.items() if row["status"] == status}
        assert good == {f"apscheduler:{name}" for name in ("often", "until", "workdays", "seasons", "asleep")}
    assert rows["apscheduler:often"]["payload"] == {"to": "bob"}
    assert rows["apscheduler:asleep"]["review"][0] == "it is paused there, and here until it is resumed"
    states = {job.name: job.state.value for job in app.list_sync().jobs}
    assert {name for name, state in states.items() if state == "paused"} == {"apscheduler:asleep"}
    windlass("resume", str(app.schedules.get_sync("apscheduler:asleep").id))
    assert app.schedules.get_sync("apscheduler:asleep").is_enabled
    assert "is neither an interval nor a cron trigger" in rows["once"]["problem"]
    assert "3rdfri" in rows["third"]["problem"]
    assert "are arguments by place" in rows["placed"]["problem"]
    assert f"{SHOP}.Order" in rows["own"]["problem"]
    refused = windlass("import", "apscheduler", store, "--table", "elsewhere", code=2).stderr
    assert "'elsewhere' cannot be read as a job store" in refused
    assert "name of a table" in windlass("import", "apscheduler", store, "--table", "a; drop", code=2).stderr


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_the_store_is_read_as_apscheduler_reads_it(tmp_path: Path, protocol: int) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with scheduler_on(url, pickle_protocol=protocol) as scheduler:
        add_jobs(scheduler)
        live = {one.name: one for one in of_apscheduler(scheduler.get_jobs()) if isinstance(one, FoundSchedule)}
        stored = {one.name: one for one in of_apscheduler_store(rows_of(url)) if isinstance(one, FoundSchedule)}
    del live["apscheduler:own"]
    assert stored == live
    assert stored["apscheduler:often"].rule.jitter == timedelta(seconds=30)
    assert str(stored["apscheduler:seasons"].rule.cadence) == "0 3-5/2 L jan-mar,oct *"


def test_what_a_pickle_would_run_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    looks = b"cbuiltins\ngetattr\n(cdatetime\ndatetime\nVnow\ntR."
    pickles = [pickle.dumps(Trap()), pickle.dumps({"func": Trap()}), looks, b"", b"\x80\x05K\x01.", pickle.dumps([1])]
    problems = [
        one.reason for one in of_apscheduler_store([("x", each) for each in pickles]) if not isinstance(one, FoundSchedule)
    ]
    assert len(problems) == len(pickles)
    assert all("mkdir" in problem for problem in problems[:2])
    assert "something other than a time zone" in problems[2]
    assert list(tmp_path.iterdir()) == []


def test_the_zones_of_pytz_are_read_without_it() -> None:
    state = (
        b"(dVtrigger\ncapscheduler.triggers.interval\nIntervalTrigger\n)\x81(dVinterval\ncdatetime\ntimedelta\n(I1\nI0\nI0\ntR"
    )
    state += b"sVtimezone\ncpytz\n_p\n(VEurope/Paris\nI540\nI0\nVLMT\ntRsbsVfunc\nVa:b\nsVargs\n)sVkwargs\n}sVnext_run_time\nNs."
    [found] = of_apscheduler_store([("old", state)])
    assert isinstance(found, FoundSchedule), found
    assert (str(found.rule.cadence), found.rule.timezone) == ("@every 1d", "Europe/Paris")
