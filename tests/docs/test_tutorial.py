"""docs/tutorial.md does what it says, typed line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, lines
from tests.docs.terminal import Terminal, wait_until_over
from windlass import Windlass

PAGE = "docs/tutorial.md"


def test_the_tutorial_works_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(PAGE, "python"):
        (tmp_path / block.mark).write_text(block.text, encoding="utf-8")
    terminal = Terminal(tmp_path, monkeypatch)
    up, *typed = lines(PAGE)
    said: dict[str, str] = {}
    charge = 0
    with terminal.up(up), Windlass(f"sqlite:///{tmp_path / 'tutorial.db'}") as app:
        for line in typed:
            said[line] = terminal.type(line)
            for task in ("greet", "charge"):
                wait_until_over(app, task)
            if line.startswith("windlass enqueue charge"):
                [charge] = [job.id for job in app.list_sync().jobs if job.task == "charge"]
        assert [run.status for run in app.executions_sync(charge)] == ["completed", "failed", "failed"]
        assert said["windlass jobs --task greet"].count("completed") == 3
        assert "0 7 * * mon-fri" in said["windlass schedules show morning"]
        assert "order 7 is paid" in said[f"windlass job {charge}"]
        assert len(json.loads(terminal.type("windlass jobs --task charge --json"))["jobs"]) == 2
        # Once more, though its table and its order are there already.
        terminal.type("python orders.py")
    assert "1 passed" in said["python -m pytest -q test_jobs.py"]
