"""A name that was mistyped is answered with the nearest one, and a broken module with its own traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from windlass import ConfigError, UnknownTask, Windlass
from windlass.core.cadence import Cron, Recurrence
from windlass.core.job import NewJob
from windlass.errors import InvalidInput, InvalidPayload, JobNotFound
from windlass.testing import run_all_sync

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def test_a_setting_that_was_mistyped_is_refused_where_it_is_written() -> None:
    with pytest.raises(ConfigError, match=r"argument lease_secnds is not a setting; did you mean lease_seconds\?"):
        Windlass(lease_secnds=3)  # type: ignore[call-arg]  # what a checker finds, others are told at run time


def test_an_option_of_a_task_that_was_mistyped_is_named(app: Windlass) -> None:
    with pytest.raises(InvalidInput, match=r"did you mean priority\?"):
        app.enqueue_sync("greet", {}, prority=3)  # type: ignore[call-arg]


def test_a_task_that_was_mistyped_is_named(app: Windlass, windlass: Command) -> None:
    @app.task
    def send_invoice() -> None: ...

    # A worker writes down what it has code for.
    run_all_sync(app)
    del send_invoice
    with pytest.raises(UnknownTask, match=r"is not registered; did you mean send_invoice\?"):
        app.enqueue_sync("send_invoce", {})
    assert "did you mean send_invoice?" in windlass("enqueue", "send_invoce", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["wroker"], "there is no command 'wroker'; did you mean worker?"),
        (["lanes", "puase", "x"], "Did you mean 'pause'?"),
        (["jobs", "--stat", "x"], "'--state'"),
        (["worker", "--packs", "hello", "--pool", "fast=1"], "'--pools'"),
        (["settings", "set", "PICK_ODER", "lifo"], "did you mean PICK_ORDER?"),
        (["settings", "get", "PICK_ODER"], "did you mean PICK_ORDER?"),
        (["jobs", "--state", "faild"], "did you mean failed?"),
        (["jobs", "--wach"], "'--watch'"),
    ],
)
def test_a_command_or_option_that_was_mistyped_is_named(windlass: Command, arguments: list[str], text: str) -> None:
    assert text in windlass(*arguments, code=2).stderr


@BOTH
@pytest.mark.parametrize(
    "typed",
    [
        ["cancel", "--task", "boomm"],
        ["run-now", "--task", "boomm"],
        ["retry", "--lane", "letters", "--task", "boomm"],
        ["pause", "--task", "boomm", "--dry-run"],
        ["dead", "requeue", "--task", "boomm"],
        ["dead", "acknowledge", "--task", "boomm"],
    ],
)
def test_a_filter_that_changes_nothing_as_its_task_was_mistyped_is_refused(
    app: Windlass, windlass: Command, typed: list[str]
) -> None:
    app.enqueue_jobs_sync([NewJob(task="boom", lane="letters")])
    refused = windlass(*typed, code=1)
    assert "task 'boomm' not found: nothing has declared it and it has no jobs; did you mean 'boom'?" in refused.stderr
    assert "force" not in refused.stderr
    assert refused.stdout == ""


@BOTH
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["jobs", "--lane", "leters"], "lane 'leters' not found"),
        (["jobs", "--task", "boomm"], "did you mean 'boom'?"),
        (["schedules", "list", "--task", "boomm"], "did you mean 'boom'?"),
        (["dead", "list", "--task", "boomm"], "did you mean 'boom'?"),
        (["jobs", "--task", "xyzzy"], "no known name is spelled like it"),
    ],
)
def test_an_empty_list_hints_at_a_name_that_was_mistyped(app: Windlass, windlass: Command, typed: list[str], hint: str) -> None:
    app.enqueue_jobs_sync([NewJob(task="boom", lane="letters")])
    listed = windlass(*typed, "--json")
    assert json.loads(listed.stdout)["total"] == 0
    assert hint in listed.stderr


def test_a_filter_of_known_names_may_match_nothing(app: Windlass, windlass: Command) -> None:
    app.enqueue_jobs_sync([NewJob(task="boom", lane="letters")])
    assert windlass("retry", "--task", "boom", "--lane", "fast").output == "windlass: 0 matched: 0 retried, 0 refused\n"
    assert windlass("jobs", "--task", "boom", "--lane", "fast").stderr == ""
    assert windlass("dead", "--task", "boom").stderr == ""


@BOTH
def test_a_schedule_that_was_mistyped_is_named(app: Windlass, windlass: Command) -> None:
    app.enqueue_jobs_sync([NewJob(task="report", name="reports", recurrence=Recurrence(cadence=Cron("0 * * * *")))])
    refused = windlass("schedules", "show", "report", code=1)
    assert "schedule 'report' not found; did you mean reports?" in refused.stderr
    with pytest.raises(JobNotFound, match=r"schedule 'xyzzy' not found$"):
        app.schedules.get_sync("xyzzy")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the name of an application with tasks of plain and of other types."""
    (tmp_path / "mail_shop.py").write_text(
        "from datetime import date\nfrom windlass import Windlass\n\nshop = Windlass()\n\n\n"
        "@shop.task\ndef mail(to: str) -> None: ...\n\n\n@shop.task\ndef book(to: str, day: date) -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "mail_shop:shop"
    sys.modules.pop("mail_shop", None)


@pytest.mark.parametrize("task", ["mail", "book"])
def test_an_argument_that_was_mistyped_is_named_before_the_missing_one(windlass: Command, shop: str, task: str) -> None:
    refused = windlass("enqueue", task, "--app", shop, "--arg", "too=x", "--arg", "day=2026-01-15", code=2)
    assert "too: is not an argument" in refused.stderr


HINT = "write --arg 'to=\"…\"' for a text"


def test_a_text_that_looks_like_json_comes_with_a_hint_by_code(windlass: Command, shop: str) -> None:
    book = ("enqueue", "book", "--app", shop, "--arg", "day=2026-01-15")
    for typed in (book, ("enqueue", "mail", "--app", shop)):
        assert HINT in windlass(*typed, "--arg", "to=1", code=2).stderr
    assert "--arg reads" not in windlass("enqueue", "mail", "--app", shop, code=2).stderr


def test_a_text_that_looks_like_json_comes_with_a_hint_by_schema(windlass: Command, app: Windlass) -> None:
    @app.task
    def mail(to: str, count: int = 1) -> None:
        del to, count

    run_all_sync(app)
    assert HINT in windlass("enqueue", "mail", "--arg", "to=1", code=2).stderr
    assert "--arg reads" not in windlass("enqueue", "mail", "--arg", "to=x", "--arg", "count=1.5", code=2).stderr
    windlass("enqueue", "mail", "--arg", 'to="1"')


@BOTH
def test_a_payload_is_edited_only_to_what_the_task_takes(app: Windlass, windlass: Command) -> None:
    @app.task
    def mail(to: str) -> None:
        del to

    run_all_sync(app)
    job = mail.enqueue_sync(to="ann")
    refused = windlass("edit", str(job.id), "--payload", '{"too": "bob"}', code=2)
    assert "too: is not an argument; there are to" in refused.stderr
    with pytest.raises(InvalidPayload, match="must be str"):
        app.edit_sync(job, payload={"to": 1})
    assert app.get_sync(job).payload_json == '{"to":"ann"}'
    windlass("edit", str(job.id), "--payload", '{"to": "bob"}')
    assert app.get_sync(job).payload_json == '{"to":"bob"}'
    [pulled] = app.enqueue_jobs_sync([NewJob(task="scrape", lane="pull")])
    windlass("edit", str(pulled.id), "--payload", '{"any": "thing"}')


def test_a_broken_module_shows_its_own_traceback_only(windlass: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_parts.py").write_text("def build():\n    return 1 / 0\n")
    (tmp_path / "broken_shop.py").write_text("import broken_parts\napp = broken_parts.build()\n")
    error = windlass("worker", "broken_shop:app", code=2).stderr
    assert "broken_shop.py" in error
    assert "return 1 / 0" in error
    assert "ZeroDivisionError" in error
    for foreign in ("importlib", "click", "windlass/cli"):
        assert foreign not in error
    assert error.count("Traceback") == 1
    [ours] = [line for line in error.splitlines() if line.startswith("windlass: ")]
    assert ours == "windlass: 'broken_shop:app': importing module 'broken_shop' failed; the traceback is above"


def test_an_application_that_was_mistyped_is_named(windlass: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "typed_shop.py").write_text("from windlass import Windlass\nshop = Windlass()\n")
    assert "has no 'shpo'; did you mean shop?" in windlass("worker", "typed_shop:shpo", code=2).stderr
