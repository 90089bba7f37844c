"""What the page about feeds shows runs as it stands, and so does the example."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from tests.support.stores import fresh_url
from windlass.cli.main import main

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "feeds.md").read_text(encoding="utf-8")


def run(script: Path, folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_of_the_page_runs(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)), encoding="utf-8")
    run(script, tmp_path)


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    [lines] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    with fresh_url("sqlite-file", tmp_path, None) as url:
        for line in lines.splitlines():
            result = CliRunner().invoke(main, shlex.split(line)[1:], env={"WINDLASS_DATABASE_URL": url})
            assert result.exit_code == 0, result.output


def test_the_example_prints_what_is_new_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = run(HERE / "examples" / "feed_reader" / "run.py", tmp_path).splitlines()
    assert len([line for line in said if " news " in line]) == 6
    assert said[-1] == "left 'All about dogs': the next fetch is None"
    assert list(tmp_path.iterdir()) == []
