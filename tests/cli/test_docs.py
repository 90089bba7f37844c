"""The examples of the command line's page, run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.conftest import Command
from windlass.cli.main import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_every_example_runs(windlass: Command) -> None:
    for line in LINES:
        said, _, command = line.rpartition(" | ")
        stdin = shlex.split(said)[1] if said else None
        name, *arguments = shlex.split(command)
        assert name == "windlass"
        windlass(*arguments, stdin=stdin)


def test_every_command_is_named() -> None:
    assert [name for name in COMMANDS if f"windlass {name}" not in PAGE] == []
