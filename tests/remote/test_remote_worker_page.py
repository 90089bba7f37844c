"""docs/remote-worker.md, run as it stands: its application, its commands, and the worker it starts."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from windlass import Windlass
from windlass.cli.main import main
from windlass.web.pull import PullIn
from windlass.web.reports import ReportIn

PAGE = (Path(__file__).parents[2] / "docs" / "remote-worker.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text(blocks("python")[0])
    migrate_sqlite(tmp_path / "windlass.db")
    server = Windlass(f"sqlite:///{tmp_path / 'windlass.db'}", admin_token="static-admin-token")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}

    def call(line: str) -> str:
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
        return done.stdout

    server_side, items = ([*block.splitlines()] for block in blocks("sh"))
    with listening(server) as port, Windlass(f"sqlite:///{tmp_path / 'windlass.db'}") as app:
        token, said = call(server_side[0]).strip(), call(server_side[1])
        [line] = blocks("console")
        command = shlex.split(line.replace("https://jobs.example.org", f"http://127.0.0.1:{port}"))
        worker = subprocess.Popen([sys.executable, "-m", *command], cwd=tmp_path, env=kept | {"WINDLASS_TOKEN": token})
        try:
            number = re.findall(r"\d+", said)[0]
            for _ in range(1000):
                if app.get_sync(int(number)).state == "completed":
                    break
                time.sleep(0.02)
        finally:
            worker.terminate()
            assert worker.wait(30) == 0
        listed, _, rest = [call(one) for one in items]
    assert "Shop 2 in Berlin" in listed
    assert json.loads(rest) == {"name": "Shop 2 in Berlin", "phone": "+49 30 2"}
    assert (tmp_path / "leads.csv").read_text().splitlines()[1] == "Shop 0 in Berlin,+49 30 0"


def test_what_goes_over_the_wire_is_taken() -> None:
    pulls, reports = blocks("json")
    PullIn.model_validate_json(pulls)
    for line in reports.splitlines():
        ReportIn.model_validate_json(line)
