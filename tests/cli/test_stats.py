"""How the queue fares, on the command line: the same numbers as everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.job import NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@BOTH
def test_stats_show_lanes_and_tasks_with_what_waits_and_fails(windlass: Command, ask: Callable[..., Any], app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane="fast") for _ in range(3)])
    [dying] = app.enqueue_jobs_sync([NewJob(task="report", lane="slow")])
    app.bury_sync(dying, "boom")
    printed = windlass("stats").stdout
    assert printed.startswith("windlass: 3 waiting; 0 of 0 slots busy on 0 workers;")
    rows = {line.split()[0]: line.split()[1:4] for line in printed.splitlines() if line.split()}
    assert rows["fast"] == rows["mail"] == ["3", "0", "0"]
    assert rows["slow"] == rows["report"] == ["0", "0", "1"]
    found = ask("stats")
    assert found["lanes"]["fast"]["jobs"]["pending"] == 3
    assert found["total"]["jobs"]["failed"] == 1


def test_an_empty_queue_has_stats_too(windlass: Command) -> None:
    assert windlass("stats").stdout.startswith("windlass: 0 waiting;")
    assert "must be seconds from 0.5" in windlass("stats", "--watch", "0.1", code=2).stderr
