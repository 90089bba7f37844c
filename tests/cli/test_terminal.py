"""Tables and pages at a terminal, and what scripts read in their place."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.at_terminal import ESCAPE, at_terminal
from tests.cli.conftest import Command
from windlass import Retry, Windlass
from windlass.cli.relative_time import relative
from windlass.testing import run_all

NOW = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
EXACT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
LONG = "the server at mail.example.org said 451 4.7.1 try again later, " * 4


@pytest.fixture
def shop(url: str) -> Iterator[Windlass]:
    """Give an application with jobs in several states."""
    with Windlass(url) as made:

        @made.task
        def count(upto: int) -> dict[str, int]:
            logging.getLogger("shop").warning("counted to %d", upto)
            return {"sum": upto}

        @made.task(max_attempts=2)
        def fail(n: int) -> None:
            del n
            raise Retry(LONG, after="0s")

        made.enqueue_sync("count", {"upto": 3}, subject="customer-1")
        made.enqueue_sync("fail", {"n": 1}, subject="customer-2")
        asyncio.run(run_all(made))
        made.enqueue_sync("count", {"upto": 4}, delay="2h")
        yield made


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "now"),
        (-12, "12 s ago"),
        (-180, "3 min ago"),
        (7199, "in 2 h"),
        (-5400, "2 h ago"),
        (3 * 86_400, "in 3 d"),
        (-70 * 86_400, "2025-11-06"),
    ],
)
def test_an_instant_is_told_by_its_distance(seconds: float, text: str) -> None:
    assert relative(NOW + timedelta(seconds=seconds), NOW) == text


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    "typed", [["jobs"], ["dead"], ["lanes"], ["tasks"], ["workers"], ["settings"], ["job", "2"], ["job", "1"]]
)
def test_nothing_is_wider_than_the_terminal(url: str, typed: list[str], columns: int) -> None:
    shown = at_terminal(columns, url, *typed)
    assert shown.code == 0
    assert shown.widest <= columns
    assert ESCAPE.search(shown.raw)


@pytest.mark.usefixtures("shop")
def test_a_terminal_shows_colours_and_relative_times(url: str) -> None:
    shown = at_terminal(140, url, "jobs")
    assert "\x1b[1;31mfailed" in shown.raw
    assert "\x1b[32mcompleted" in shown.raw
    assert "in 2 h" in shown.text
    assert not EXACT.search(shown.text)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("typed", [["jobs"], ["job", "2"]])
def test_no_colour_leaves_no_escape_codes(url: str, typed: list[str]) -> None:
    shown = at_terminal(80, url, *typed, NO_COLOR="1")
    assert "\x1b" not in shown.raw
    assert "failed" in shown.text


@pytest.mark.usefixtures("shop")
def test_what_is_piped_is_exact_uncut_and_plain_and_loads_no_rich(url: str) -> None:
    code = (
        "import sys\nfrom windlass.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    print('rich' in sys.modules, file=sys.stderr)"
    )
    environment = os.environ | {"WINDLASS_DATABASE_URL": url, "FORCE_COLOR": "1"}
    for typed in (["jobs"], ["jobs", "--json"], ["job", "2"], ["lanes"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *typed], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert ("\x1b" in done.stdout, done.stderr.strip()) == (False, "False")
        if typed == ["jobs"]:
            assert EXACT.search(done.stdout)
            assert "in 2 h" not in done.stdout


@pytest.mark.usefixtures("shop")
def test_a_narrow_terminal_leaves_out_what_matters_least(url: str) -> None:
    for columns in (30, 45, 60):
        shown = at_terminal(columns, url, "jobs")
        assert shown.widest <= columns
        assert shown.lines[0].split()[0] == "id"
        assert "priority" not in shown.lines[0]
        assert [line.split()[0] for line in shown.lines if "scheduled" in line] == ["3"]


@pytest.mark.usefixtures("shop")
def test_a_job_is_a_page(url: str) -> None:
    text = at_terminal(120, url, "job", "2").text
    parts = ["job 2  fail  failed", "\nattempts\n", "\npayload\n", "\nerror\n", "\nnext\n"]
    assert sorted(text.index(part) for part in parts) == [text.index(part) for part in parts]
    rows = [line.split() for line in text.splitlines() if "━" in line]
    assert [(row[0], "failed" in row) for row in rows] == [("1", True), ("2", True)]
    assert "Traceback (most recent call last):" in text
    assert "windlass retry 2" in text
    assert "windlass dead show 1" in text
    well = at_terminal(120, url, "job", "1").text
    assert '"sum": 3' in well
    assert "counted to 3" in well
    assert "windlass clone 1" in well


@pytest.mark.usefixtures("shop")
def test_a_page_has_its_commands_and_letters_in_json(windlass: Command) -> None:
    page = json.loads(windlass("job", "2", "--json").stdout)
    assert page["next"] == ["windlass retry 2", "windlass dead show 1"]
    assert [one["job_id"] for one in page["dead_letters"]] == [2]
    assert [run["number"] for run in page["runs"]] == [2, 1]


def test_text_of_others_is_escaped_in_drawings_too(url: str, app: Windlass) -> None:
    app.enqueue_sync("a", {"x": "\x1b[31m[red]"}, lane="pull", subject="a\x1b[31mb\nc[bold]d")
    listed = at_terminal(200, url, "jobs")
    assert r"a\u001b[31mb\nc[bold]d" in listed.text
    page = at_terminal(200, url, "job", "1")
    assert r"a\u001b[31mb\nc[bold]d" in page.text
    assert "[31m[red]" in page.text
    assert "\x1b[31m[" not in page.raw
