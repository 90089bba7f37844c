"""docs/howto and docs/coming-from: what stands there to be run runs, and to be typed is typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.docs.blocks import FRAGMENT, ROOT, blocks, lines, pages
from windlass import Windlass
from windlass.cli.main import COMMANDS, main
from windlass.config import known
from windlass.web.routes import ROUTES

GUIDES = [page for page in pages() if page.startswith(("docs/howto/", "docs/coming-from/"))]
WRITTEN = [
    page
    for page in pages()
    # Not the list of pages, nor those that programs write.
    if page.startswith("docs/") and not page.startswith(("docs/README.md", "docs/benchmarks.md", "docs/reference/"))
]
WITH_PYTHON = [page for page in GUIDES if blocks(page, "python")]
WITH_COMMANDS = [page for page in GUIDES if blocks(page, "sh")]
CRONTAB = "30 3 * * 1-5 /usr/bin/true\n"
LASTING = frozenset({"serve", "up", "worker"})
"""Commands that run until they are stopped: tests/cli runs them, here their options are read."""
UNWELL = frozenset({"doctor"})
"""Nobody works on this database, and the doctor says so with its exit code."""


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_the_python_of_a_guide_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "guide"}
    # A block that is marked as a file is one of a Django project: tests/django/test_guide.py runs it there.
    text = "\n".join(block.text for block in blocks(page, "python") if block.mark != FRAGMENT and not block.mark.endswith(".py"))
    try:
        exec(compile(text, page, "exec", dont_inherit=True), names)
    finally:
        if isinstance(app := names.get("app"), Windlass):
            app.close()


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_guide_are_typed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crontab.txt").write_text(CRONTAB, encoding="utf-8")
    database = f"sqlite:///{tmp_path / 'jobs.db'}"
    with Windlass(database, accept_unknown=True) as app:
        app.enqueue_sync("email", {})
    for line in lines(page):
        typed = shlex.split(line)
        assert typed[0] == "windlass", line
        if typed[1] in LASTING:
            _read(typed[1:])
            continue
        result = CliRunner().invoke(main, typed[1:], env={"WINDLASS_DATABASE_URL": database})
        assert result.exit_code == 0 or typed[1] in UNWELL, (line, result.output, result.exception)


@pytest.mark.parametrize("page", WRITTEN)
def test_a_page_begins_with_what_its_reader_gets(page: str) -> None:
    title, promise = (ROOT / page).read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# "), title
    assert re.match(r"After this page |Short answers ", promise), promise


@pytest.mark.parametrize("page", GUIDES)
def test_settings_commands_and_routes_that_a_guide_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    variables = {one.variable for one in known()}
    assert {name for name in re.findall(r"\bWINDLASS_[A-Z_]+[A-Z]\b", text) if name not in variables} == set()
    assert {name for name in re.findall(r"`windlass ([a-z-]+)", text) if name not in COMMANDS} == set()
    paths = {route.path.partition("{")[0].rstrip("/") for route in ROUTES}
    named = {
        found.partition("{")[0].rstrip("/")
        for found in re.findall(r"`(?:GET |POST )?(/api/v1/[^`? ]*|/healthz|/readyz|/metrics)", text)
    }
    assert named <= paths


def _read(typed: list[str]) -> None:
    command = main.get_command(click.Context(main), typed[0])
    assert command is not None
    command.make_context(typed[0], list(typed[1:]))


def test_the_guides_are_there() -> None:
    assert len(GUIDES) > 15
