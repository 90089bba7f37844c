from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from tests.support.claims import a_claimed_job
from windlass.core.current import RunningJob, current_run
from windlass.errors import ConfigError
from windlass.telemetry import LOGS, JsonFormatter, TextFormatter, configure_logging


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "app", "levelname": "INFO", "levelno": 20, "msg": message, "created": 0.0})
    vars(made).update(extra)
    return made


@pytest.fixture
def running() -> object:
    token = current_run.set(RunningJob(a_claimed_job(attempt=2, correlation_id="user action")))
    yield
    current_run.reset(token)


@pytest.mark.usefixtures("running")
def test_a_line_for_people_names_its_job() -> None:
    line = TextFormatter().format(record("sent", retry_in="120s"))
    assert line == '1970-01-01 00:00:00.000 INFO    sent job_id=7 task=email attempt=2 correlation_id="user action" retry_in=120s'


@pytest.mark.usefixtures("running")
def test_a_line_for_machines_is_one_json_object() -> None:
    line = JsonFormatter().format(record('a "quoted"\nmessage', items_crawled=25, odd={1}))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "app",
        "message": 'a "quoted"\nmessage',
        "job_id": 7,
        "task": "email",
        "attempt": 2,
        "correlation_id": "user action",
        "items_crawled": 25,
        "odd": "{1}",
    }


def test_an_exception_comes_with_the_line() -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("boom")
    made = record("failed", exc_info=(caught.type, caught.value, caught.tb))
    assert "ValueError: invalid literal" in json.loads(JsonFormatter().format(made))["exception"]
    assert "ValueError: invalid literal" in TextFormatter().format(made)


def test_an_unknown_level_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'loud'"):
        configure_logging("loud")


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """Undo what configuring the log changes, for the tests that come after."""
    root, ours = logging.getLogger(), logging.getLogger("windlass.worker")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    monkeypatch.setenv(LOGS, "")
    yield root
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_the_level_of_the_terminal_does_not_decide_what_runs_may_keep(restored: logging.Logger) -> None:
    said, kept = StringIO(), StringIO()
    configure_logging("warning", stream=said)
    restored.addHandler(logging.StreamHandler(kept))
    logging.getLogger("test.levels").info("a detail")
    assert (said.getvalue(), kept.getvalue()) == ("", "a detail\n")
