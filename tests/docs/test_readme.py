"""README.md does what it says, typed line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dev
from tests.docs.blocks import blocks, lines
from tests.docs.terminal import Terminal, wait_until_over
from windlass import Windlass

PAGE = "README.md"


def test_the_readme_works_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [jobs] = blocks(PAGE, "python")
    (tmp_path / "jobs.py").write_text(jobs.text, encoding="utf-8")
    terminal = Terminal(tmp_path, monkeypatch)
    typed = lines(PAGE)
    own = [line for line in typed if line.startswith("python3 dev.py")]
    [curl, look] = [line for line in typed if line.startswith("curl")]
    [enqueue] = [line for line in typed if line.startswith("python -c")]
    [up] = [line for line in typed if line.startswith("windlass up")]
    assert len(typed) == len(own) + 4
    # `dev.py up` is `windlass up` in an environment of its own; installing one here would take minutes.
    assert {line.split()[2] for line in own} <= dev.COMMANDS.keys()
    with terminal.up("windlass up"), Windlass(f"sqlite:///{tmp_path / 'windlass.db'}") as app:
        made = json.loads(terminal.type(curl))
        wait_until_over(app, "hello")
        [seen] = json.loads(terminal.type(look))["jobs"]
        assert (seen["number"], seen["status"]) == (made["number"], "completed")
        assert [run.status for run in app.executions_sync(made["number"])] == ["completed"]
        assert app.wait_sync(made["number"]) == "Hello, world!"
    terminal.type(enqueue)
    with terminal.up(up), Windlass(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        wait_until_over(app, "welcome")
