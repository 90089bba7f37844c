"""Pages whose blocks need no more than a folder, a database and a look at the options."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
from click.testing import CliRunner

from tests.docs.blocks import blocks, lines
from windlass import Windlass
from windlass.cli.main import main
from windlass.core.access import Role
from windlass.web import lanes as lanes_face

CRONTAB = "*/5 * * * * /usr/bin/true\n"
SYSTEM_CRONTAB = "*/5 * * * * root /usr/bin/true\n"
LASTING = frozenset({"serve", "up", "upkeep", "worker"})
"""Commands that run until they are stopped: tests/cli runs them, here their options are read."""


@pytest.mark.parametrize(
    "page", ["docs/alerts.md", "docs/metrics.md", "docs/systems/async-jobs.md", "docs/systems/feed-jobs.md", "docs/tracing.md"]
)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.text for block in blocks(page, "python")), encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    typed = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(typed, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["docs/alerts.md", "docs/upkeep.md", "docs/worker.md"])
def test_the_commands_of_a_page_are_taken(page: str, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'jobs.db'}"
    Windlass(database).migrate()
    for line in lines(page):
        typed = shlex.split(re.sub(r"^\w+=\S+ ", "", _here(line, tmp_path)))
        assert typed[0] == "windlass", line
        if typed[1] in LASTING:
            command = main.get_command(click.Context(main), typed[1])
            assert command is not None
            command.make_context(typed[1], typed[2:])
            continue
        result = CliRunner().invoke(main, typed[1:], env={"WINDLASS_DATABASE_URL": database})
        assert result.exit_code == 0, (line, result.output, result.exception)


def test_the_route_of_the_page_is_one() -> None:
    _, block = blocks("docs/server.md", "python")
    names = dict(vars(lanes_face))
    exec(compile(block.text, "server.md", "exec"), names)
    [route] = names["ROUTES"]
    assert (route.path, route.least) == ("/api/v1/lanes/{name}/pause", Role.OPERATOR)


async def test_the_server_is_mounted_as_the_page_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(blocks("docs/server.md", "python")[0].text, "server.md", "exec"), names)
    names["jobs"].migrate()
    transport = httpx2.ASGITransport(names["web"])
    async with names["lifespan"](None), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/ops/jobs")).headers["location"] == "/ops/login?next=/ops/jobs"


def _here(line: str, folder: Path) -> str:
    """Put files where a page has its crontabs."""
    for place, text in (("/var/spool/cron/crontabs/ada", CRONTAB), ("/etc/crontab", SYSTEM_CRONTAB)):
        if place in line:
            file = folder / place.replace("/", "_")
            file.write_text(text, encoding="utf-8")
            line = line.replace(place, str(file))
    return line
