"""`windlass logs`: what runs have logged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.cli.conftest import Command
from tests.cli.running import interrupt, running
from tests.remote.test_docs import working
from windlass import Retry, Windlass
from windlass.testing import run_all

pytestmark = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def shop(url: str) -> Iterator[Windlass]:
    with Windlass(url) as made:

        @made.task(max_attempts=2)
        def try_it(name: str) -> None:
            logging.getLogger("shop").warning("trying %s\x1b[31m", name)
            raise Retry("not yet", after="0s")

        @made.task
        def silent() -> None: ...

        yield made


def test_the_lines_of_every_run_are_printed_and_whose_they_are_beside(windlass: Command, shop: Windlass) -> None:
    shop.enqueue_sync("try_it", {"name": "ann"})
    asyncio.run(run_all(shop))
    shown = windlass("logs", "1")
    assert [line.partition("WARNING ")[2] for line in shown.stdout.splitlines()] == [r"shop: trying ann\u001b[31m"] * 2
    beside = shown.stderr.splitlines()
    assert [line.partition(" after")[0] for line in beside] == [
        "windlass: run 1, attempt 1: failed",
        "windlass: run 2, attempt 2: failed",
        "windlass: job 1 is failed",
    ]
    rows = [json.loads(line) for line in windlass("logs", "1", "--run", "2", "--json").stdout.splitlines()]
    assert [(row["run"], row["status"], "trying ann" in row["line"]) for row in rows] == [(2, "failed", True)]


def test_what_has_no_lines_is_named(windlass: Command, shop: Windlass) -> None:
    shop.enqueue_sync("silent")
    assert windlass("logs", "1").stderr == "windlass: job 1 is pending; no run of it has ended\n"
    asyncio.run(run_all(shop))
    assert "it logged nothing" in windlass("logs", "1").stderr
    assert windlass("logs", "7", code=1).stderr.startswith("windlass: job 7 not found; ")
    assert windlass("logs", "1", "--run", "9", code=1).stderr.startswith("windlass: job 1 has no execution 9; ")
    assert "--run" in windlass("logs", "1", "--run", "0", code=2).stderr


def test_following_ends_with_the_job(url: str, shop: Windlass) -> None:
    job = shop.enqueue_sync("try_it", {"name": "bob"})
    with running(url, "logs", str(job.id), "--follow") as process:
        worker = Thread(target=lambda: asyncio.run(run_all(shop)))
        worker.start()
        out, errors = process.communicate(timeout=60)
        worker.join()
    assert process.returncode == 0
    assert out.count("trying bob") == 2
    assert errors.splitlines()[-1] == f"windlass: job {job.id} is failed"


def test_the_lines_of_a_long_run_are_followed_while_it_runs(windlass: Command, url: str) -> None:
    app, gate = Windlass(url, lease_seconds="4s"), Event()

    @app.task
    def crawl() -> None:
        logging.getLogger("shop").warning("page one")
        assert gate.wait(60)
        logging.getLogger("shop").warning("page two")

    job = app.enqueue_sync("crawl")
    with working(app), running(url, "logs", str(job.id), "--follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("WARNING shop: page one\n")
        so_far = windlass("logs", str(job.id), "--json")
        assert [(row["status"], "page one" in row["line"]) for row in map(json.loads, so_far.stdout.splitlines())] == [
            ("running", True)
        ]
        gate.set()
        out, errors = process.communicate(timeout=60)
    assert out.endswith("WARNING shop: page two\n")
    assert out.count("\n") == 1
    assert [line.partition(" after")[0] for line in errors.splitlines()] == [
        "windlass: run 1, attempt 1: running",
        "windlass: run 1, attempt 1: completed",
        f"windlass: job {job.id} is completed",
    ]


def test_following_what_does_not_end_ends_with_ctrl_c(url: str, shop: Windlass) -> None:
    job = shop.enqueue_sync("try_it", {"name": "cay"})
    shop.pause_sync(shop.enqueue_sync("silent", delay="1h"))
    asyncio.run(run_all(shop))
    with running(url, "logs", "2", "--follow") as process:
        # Once two other commands have ended one after the other, this one has surely looked for the first time.
        for _ in range(2):
            with running(url, "logs", str(job.id)) as over:
                over.communicate(timeout=60)
        out, _, code = interrupt(process)
    assert (out, code) == ("", 0)
