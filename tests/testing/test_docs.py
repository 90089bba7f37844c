from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    texts: dict[str, list[str]] = {}
    for language, mark, text in blocks:
        assert mark or language == "text", text
        texts.setdefault(mark, []).append(text)
    for mark, name in (("jobs", "jobs.py"), ("test", "test_jobs.py"), ("pytest.ini", "pytest.ini")):
        (tmp_path / name).write_text("\n".join(texts[mark]), encoding="utf-8")
    plugins = ("-p", "windlass.testing.plugin", "-p", "anyio.pytest_plugin")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", *plugins],
        cwd=tmp_path,
        env={**environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert f"{sum('def test_' in line for line in ''.join(texts['test']).splitlines())} passed" in told
