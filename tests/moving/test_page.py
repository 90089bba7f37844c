"""The commands of docs/moving.md, typed as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.blocks import lines
from tests.support.stores import fresh_url
from windlass import Windlass
from windlass.cli.main import main
from windlass.core.job import NewJob

PAGE = "docs/moving.md"


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with fresh_url("sqlite-file", tmp_path, None) as url:
        with Windlass(url) as app:
            app.enqueue_jobs_sync([NewJob(task="mail", run_at=None)])
        for line in lines(PAGE):
            result = CliRunner().invoke(main, shlex.split(line)[1:], env={"WINDLASS_DATABASE_URL": url})
            assert result.exit_code == 0, (line, result.output, result.exception)
