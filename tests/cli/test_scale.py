"""How many workers a lane wants, for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.job import NewJob


@pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
def test_the_number_stands_alone_for_scripts(windlass: Command, ask: Callable[..., Any], app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane="fast") for _ in range(7)])
    assert windlass("scale", "fast", "--slots", "2").stdout == "4\n"
    found = ask("scale", "fast")
    assert (found["workers"], found["slots_per_worker"], found["pending"]) == (3, 3, 7)
    assert "within" in windlass("scale", "fast", "--within", "soon", code=2).stderr
