"""Every list can be watched."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.cli.at_terminal import at_terminal
from tests.cli.conftest import Command
from tests.cli.running import interrupt, running
from windlass import Windlass
from windlass.cli.main import COMMANDS, main

SCREEN = "\x1b[?1049h"
BACK = "\x1b[?1049l"


def lists() -> list[tuple[str, click.Command]]:
    """Find the commands that list something."""
    found = []
    with click.Context(main, info_name="windlass") as context:
        for name in COMMANDS:
            command = main.get_command(context, name)
            if isinstance(command, click.Group) and "list" in command.commands:
                found.append((f"{name} list", command.commands["list"]))
            elif name in {"jobs", "workers"} and command is not None:
                found.append((name, command))
    return found


def test_every_list_has_json_and_watch() -> None:
    found = lists()
    assert len(found) > 12
    for name, command in found:
        assert {"--json", "--watch"} <= {option for one in command.params for option in one.opts}, name


@pytest.mark.parametrize("seconds", ["0.4", "0", "often", "nan", "100000"])
def test_a_watch_that_is_too_short_or_no_time_is_refused_by_name(windlass: Command, seconds: str) -> None:
    error = windlass("lanes", f"--watch={seconds}", code=2).stderr
    assert error.startswith("windlass: watch: must be seconds from 0.5")
    assert seconds in error


def test_a_piped_watch_prints_a_block_each_time_and_ends_well(url: str, app: Windlass) -> None:
    with running(url, "jobs", "--watch", "0.5") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["id", "task"]
        assert process.stdout.readline() == "windlass: 0 of 0\n"
        app.enqueue_sync("mail", {}, lane="pull")
        lines = [""]
        while lines[-1] != "windlass: 1 of 1\n" and (line := process.stdout.readline()):
            lines.append(line)
        assert lines[1] == "\n"
        rest, errors, code = interrupt(process)
    assert (code, errors, "\x1b" in "".join(lines) + rest) == (0, "", False)


def test_a_watch_in_json_prints_one_document_after_the_other(url: str) -> None:
    with running(url, "lanes", "--json", "--watch", "0.5") as process:
        assert process.stdout is not None
        text = ""
        while text.count('"total"') < 2 and (line := process.stdout.readline()):
            text += line
        interrupt(process)
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(text)
    assert first == {"lanes": [], "total": 0}
    assert text[end:].lstrip().startswith("{")


def test_a_watch_at_a_terminal_is_redrawn_in_place(url: str, app: Windlass) -> None:
    app.enqueue_sync("mail", {}, lane="pull")
    shown = at_terminal(80, url, "jobs", "--watch", "0.5", until=lambda raw: raw.count("Ctrl-C ends") >= 2)
    assert shown.code == 0
    assert shown.raw.startswith(SCREEN)
    assert shown.raw.count("\x1b[H") >= 2
    assert shown.widest <= 80
    # The screen from before comes back, with the last picture on it.
    assert "mail" in shown.raw.partition(BACK)[2]


def test_a_watch_goes_on_while_the_database_is_away(url: str, tmp_path: Path, app: Windlass) -> None:
    app.close()
    [file] = tmp_path.glob("*.db")
    with running(url, "lanes", "--watch", "0.5") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("name")
        file.rename(tmp_path / "elsewhere")
        error = process.stderr.readline() if process.stderr is not None else ""
        (tmp_path / "elsewhere").rename(file)
        assert error.startswith("windlass: ")
        # At the end there is an empty line, without its end.
        while (line := process.stdout.readline()) and not line.startswith("name"):
            pass
        assert line
        assert interrupt(process)[2] == 0
