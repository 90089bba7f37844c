"""Jobs on the command line: enqueued, listed, shown and moved."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.at_terminal import at_terminal
from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.audit import AuditFilter
from windlass.core.blocking import run

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def enqueue(windlass: Command, *arguments: str) -> None:
    windlass("enqueue", "mail", "--lane", "pull", *arguments)


@BOTH
def test_a_job_is_enqueued_listed_shown_and_cancelled(windlass: Command, ask: Any, app: Windlass) -> None:
    made = ask("enqueue", "mail", "--lane", "pull", "--arg", "to=ann", "--arg", "n=3", "--subject", "s", "--priority", "7")
    assert made == {"id": 1, "is_duplicate": False}
    listed = ask("jobs", "--state", "pending,running", "--task", "mail")
    assert (listed["total"], listed["is_total_exact"], listed["next_cursor"]) == (1, True, None)
    [job] = listed["jobs"]
    assert (job["id"], job["payload"], job["priority"], job["subject"]) == (1, {"to": "ann", "n": 3}, 7, "s")
    assert job["created_by"].startswith("cli:")
    assert "token" not in job
    table = windlass("jobs").stdout.splitlines()
    assert (table[0].split()[:4], table[1].split()[:4]) == (["id", "task", "lane", "state"], ["1", "mail", "pull", "pending"])
    assert windlass("cancel", "1").stdout == "windlass: job 1 is cancelled\n"
    shown = ask("job", "1")
    assert (shown["state"], shown["runs"]) == ("cancelled", [])
    assert "cancelled" in windlass("job", "1").stdout
    [line] = run(run(app.blocking_store()).audit.list(AuditFilter(action="cancel")))
    assert (line.principal.startswith("cli:"), line.target) == (True, "job:1")


def test_a_payload_comes_from_an_argument_or_the_standard_input(windlass: Command, ask: Any) -> None:
    enqueue(windlass, "--payload", '{"a": 1}', "--arg", "b=true", "--arg", "c=")
    windlass("enqueue", "mail", "--lane", "pull", "--payload", "-", stdin='{"a": "ü"}')
    assert [job["payload"] for job in ask("jobs", "--oldest-first")["jobs"]] == [{"a": 1, "b": True, "c": ""}, {"a": "ü"}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--payload", "{"], "payload"),
        (["--payload", "[1]"], "JSON object"),
        (["--payload", '{"a":1,"a":2}'], "payload"),
        (["--arg", "to"], "name=value"),
        (["--delay", "soon"], "delay"),
        (["--run-at", "tomorrow"], "2026-01-15T10:30Z"),
        (["--run-at", "2026-01-15T10:30"], "time zone"),
        (["--max-attempts", "0"], "max_attempts"),
        (["--on-conflict", "shrug"], "on-conflict"),
    ],
)
def test_what_cannot_be_enqueued_is_usage(windlass: Command, arguments: list[str], words: str) -> None:
    assert words in windlass("enqueue", "mail", "--lane", "pull", *arguments, code=2).stderr


def test_an_unknown_task_is_refused_with_what_to_do(windlass: Command) -> None:
    refused = windlass("enqueue", "nothing", code=1)
    assert "WINDLASS_ACCEPT_UNKNOWN" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_taken_key_is_told(windlass: Command, ask: Any) -> None:
    enqueue(windlass, "--unique-key", "k")
    assert "job 1 has this key already" in windlass("enqueue", "mail", "--lane", "pull", "--unique-key", "k").stdout
    assert ask("enqueue", "mail", "--lane", "pull", "--unique-key", "k")["is_duplicate"]
    windlass("enqueue", "mail", "--lane", "pull", "--unique-key", "k", "--on-conflict", "reject", code=1)


def test_moves_of_several_tell_of_each_and_of_what_was_refused(windlass: Command, ask: Any) -> None:
    enqueue(windlass, "--delay", "1h")
    enqueue(windlass)
    paused = windlass("pause", "1", "2", "9", code=1)
    assert paused.stdout == "windlass: job 1 is paused\n"
    assert ("pending → paused" in paused.stderr, "job 9 not found" in paused.stderr) == (True, True)
    answer = ask("resume", "1", "x", code=1)
    assert ([job["state"] for job in answer["jobs"]], answer["errors"]) == (["scheduled"], ["job 'x' not found"])
    assert windlass("run-now", "1").stdout == "windlass: job 1 is pending\n"
    assert "pending → pending" in windlass("retry", "1", code=1).stderr


@BOTH
def test_moves_by_filter_are_counted_and_first_tried_dry(windlass: Command, ask: Any, app: Windlass) -> None:
    for number in range(3):
        enqueue(windlass, "--subject", f"s{number}")
    app.bury_sync(1, "unwanted")
    assert windlass("retry", "--state", "failed", "--dry-run").stdout == "windlass: 1 match; nothing was changed\n"
    assert ask("retry", "--state", "failed") == {"matched": 1, "changed": 1, "refused": 0, "dry_run": False}
    assert windlass("cancel", "--task", "mail", "--subject", "s0").stdout == "windlass: 1 matched: 1 cancelled, 0 refused\n"
    assert ask("cancel", "--all", "--reason", "sold out") == {"matched": 3, "changed": 2, "refused": 1, "dry_run": False}
    assert app.get_sync(2).last_error == "sold out"


def test_a_cancelled_job_carries_the_reason_and_an_error_quotes_no_line_breaks(windlass: Command, app: Windlass) -> None:
    enqueue(windlass)
    windlass("cancel", "1", "--reason", "changed my mind")
    assert app.get_sync(1).last_error == "changed my mind"
    told = windlass("retry", "1\nwindlass: job 2 is pending", code=1).stderr
    assert told.count("\n") == 1, told


@pytest.mark.parametrize("arguments", [[], ["1", "--all"], ["1", "--state", "failed"], ["1", "--dry-run"], ["--dry-run"]])
def test_a_move_needs_jobs_or_filters_and_not_both(windlass: Command, arguments: list[str]) -> None:
    assert "Error:" in windlass("cancel", *arguments, code=2).stderr


def test_lists_are_paged_sorted_and_searched(windlass: Command, ask: Any) -> None:
    for number in range(5):
        enqueue(windlass, "--priority", str(number % 3), "--arg", f"n=x{number}")
    first = ask("jobs", "--limit", "2")
    rest = ask("jobs", "--limit", "3", "--cursor", first["next_cursor"])
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == [5, 4, 3, 2, 1]
    assert f"--cursor {first['next_cursor']}" in windlass("jobs", "--limit", "2").stdout
    assert [job["id"] for job in ask("jobs", "--sort", "priority")["jobs"]] == [3, 2, 5, 1, 4]
    assert [job["id"] for job in ask("jobs", "--search", "X3")["jobs"]] == [4]
    assert [job["id"] for job in ask("jobs", "--offset", "4")["jobs"]] == [1]
    assert ask("jobs", "--since", "2999-01-01T00:00Z")["jobs"] == []
    assert "STATE" not in windlass("jobs", "--state", "waiting", code=2).stderr
    assert "windlass: 0 of 0" in windlass("jobs", "--lane", "none").stdout


def test_what_is_not_there_is_named(windlass: Command) -> None:
    assert windlass("job", "7", code=1).stderr.startswith("windlass: job 7 not found; ")
    assert "not found" in windlass("job", "<b>", code=1).stderr


def test_text_of_others_cannot_move_the_cursor(windlass: Command) -> None:
    enqueue(windlass, "--subject", "a\x1b[31mb\nc\u2028d\u202ee\u2066f")
    assert r"a\u001b[31mb\nc\u2028d" in windlass("jobs").stdout
    assert r"a\u001b[31mb\nc\u2028d\u202ee\u2066f" in windlass("job", "1").stdout


@pytest.mark.parametrize("text", ["x" * 200, "錨" * 100, "two words " * 20])
def test_a_table_is_no_wider_than_its_terminal(windlass: Command, app: Windlass, url: str, text: str) -> None:
    enqueue(windlass, "--subject", text, "--correlation-id", text, "--priority", "7")
    app.bury_sync(1, text)
    for arguments in (["jobs"], ["dead"], ["lanes"], ["tasks"]):
        shown = at_terminal(100, url, *arguments)
        assert shown.code == 0
        assert shown.widest <= 100
        if arguments == ["jobs"]:
            [row] = [line for line in shown.lines if "mail" in line]
            assert "…" in row
            assert "failed" in row
