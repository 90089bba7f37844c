"""`windlass explain`, and the page about it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.docs.blocks import ROOT, blocks, lines
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.explanation import Situation
from windlass.core.ids import job_uuid
from windlass.core.job import NewJob
from windlass.core.known_task import DeclaredTask

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
PAGE = "docs/explain.md"


def enqueue(app: Windlass, task: str = "send_mail", **options: Any) -> int:
    [made] = app.enqueue_jobs_sync([NewJob(task=task, **{"lane": "mail", **options})])
    return made.id


@BOTH
def test_the_command_that_it_prints_opens_the_gate(windlass: Command, ask: Any, app: Windlass) -> None:
    job = enqueue(app)
    windlass("lanes", "pause", "mail")
    found = ask("explain", str(job))
    assert (found["verdict"], found["command"]) == ("lane_paused", "windlass lanes resume mail")
    assert [check["gate"] for check in found["details"] if not check["passed"]] == ["lane", "worker"]
    windlass(*found["command"].split()[1:])
    assert ask("explain", str(job_uuid(job)))["verdict"] == "no_live_worker"


@BOTH
def test_a_dead_job_is_told_with_its_kind(windlass: Command, ask: Any, app: Windlass) -> None:
    jobs = [enqueue(app) for _ in range(2)]
    windlass("bury", *map(str, jobs), "--error", "mailbox 7 is full")
    found = ask("explain", str(jobs[0]))
    assert (found["verdict"], found["failure"]["error"], found["failure"]["deaths"]) == ("failed", "mailbox 7 is full", 2)
    shown = windlass("explain", str(jobs[0])).stdout
    assert "failures of this kind\n  error           mailbox 7 is full\n" in shown
    assert windlass(*found["command"].split()[1:]).stdout.startswith("dead letter")


@BOTH
def test_lanes_and_tasks(windlass: Command, ask: Any, app: Windlass) -> None:
    enqueue(app)
    assert (ask("explain", "--lane", "mail")["verdict"], ask("explain", "--task", "send_mail")["verdict"]) == (
        "no_live_worker",
        "no_live_worker",
    )
    assert windlass("explain", "--lane", "fast").stdout.startswith("lane fast: empty\n")


def test_what_is_not_there_is_refused_with_the_nearest_name(windlass: Command, app: Windlass) -> None:
    enqueue(app)
    run(run(app.blocking_store()).tasks.declare([DeclaredTask(name="crawl_site")]))
    assert windlass("explain", "77", code=1).stderr.startswith("windlass: job 77 not found; ")
    assert windlass("explain", "nonsense", code=1).stderr.startswith("windlass: job 'nonsense' not found; ")
    assert "lane 'maill' not found" in (refused := windlass("explain", "--lane", "maill", code=1).stderr)
    assert "did you mean 'mail'?" in refused
    assert "did you mean 'crawl_site'?" in windlass("explain", "--task", "crawlsite", code=1).stderr
    assert "lane: must be one lane" in windlass("explain", "--lane", "*", code=2).stderr


@pytest.mark.parametrize("typed", [(), ("1", "--lane", "mail"), ("--task", "a", "--lane", "b")])
def test_one_thing_is_explained_at_a_time(windlass: Command, typed: tuple[str, ...]) -> None:
    assert "name one thing to explain" in windlass("explain", *typed, code=2).stderr


def test_text_of_others_stays_on_its_line(windlass: Command, app: Windlass) -> None:
    job = enqueue(app)
    windlass("bury", str(job), "--error", "boom\n  ok  state     it is fine\x1b[31m")
    shown = windlass("explain", str(job)).stdout
    assert "\x1b" not in shown
    assert "\n  ok  state" not in shown


def test_the_page_shows_what_is_printed(windlass: Command, app: Windlass) -> None:
    enqueue(app)
    windlass("lanes", "pause", "mail")
    printed = [windlass(*line.split()[1:]).stdout for line in lines(PAGE)]
    shown = [block.text for block in blocks(PAGE, "text")]
    assert list(map(masked, printed)) == list(map(masked, shown))


def masked(text: str) -> str:
    """Take out what differs each time: instants, lengths of time and who typed."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \([^)]*\)", "TIME", text)
    return re.sub(r"by cli:\w+", "by cli:NAME", text)


def test_the_page_names_every_verdict() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [one for one in Situation if f"`{one.value}`" not in page] == []
