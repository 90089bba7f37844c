"""`windlass init` writes a project that runs, and `windlass shell` opens it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from windlass.cli.main import main


def run(folder: Path, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=env, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done


def test_the_project_that_it_writes_runs_its_test_and_its_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "my shop"
    result = CliRunner().invoke(main, ["init", str(folder)])
    assert result.exit_code == 0, result.output
    assert "windlass up my_shop:app --reload" in result.output
    assert "1 passed" in run(folder, "pytest", "-q", "-p", "no:cacheprovider").stdout
    told = run(folder, "windlass", "shell", "my_shop:app", stdin=SHELL)
    assert told.stdout.splitlines() == ["job 1", "2", "1 1", "still there"]
    assert "ZeroDivisionError" in told.stderr


SHELL = """\
job = await greet.enqueue(name="Ann")
print("job", job.id)
1 + 1
page = await app.list(JobQuery(filter=JobFilter(tasks=("greet",))))
print(page.total, len(page.jobs))
1 / 0
print("still there")
"""


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    result = CliRunner().invoke(main, ["init", str(tmp_path)])
    assert result.exit_code == 2
    assert "has README.md already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
