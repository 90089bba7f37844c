"""What shells complete: commands, options, and names from the database."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.cli.main import COMMANDS
from windlass.core.cadence import Cron, Recurrence
from windlass.core.job import NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def complete(url: str, line: str) -> list[str]:
    """Ask as bash does; nothing may be written beside the answer."""
    words = line.split(" ")
    environment = os.environ | {
        "WINDLASS_DATABASE_URL": url,
        "_WINDLASS_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    # As the script of the package does, so that the program has its name.
    code = "import sys; sys.argv = ['windlass']; from windlass.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return [found.partition(",")[2] for found in done.stdout.split()]


@pytest.fixture
def filled(url: str, app: Windlass) -> str:
    app.enqueue_jobs_sync(
        [NewJob(task="send_mail", lane="letters"), NewJob(task="send_fax", lane="letters"), NewJob(task="other")]
    )
    app.enqueue_jobs_sync([NewJob(task="report", name="nightly", recurrence=Recurrence(cadence=Cron("0 2 * * *")))])
    app.breakers.force_open_sync("smtp")
    return url


@BOTH
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("windlass jobs --task send_", ["send_fax", "send_mail"]),
        ("windlass enqueue send_m", ["send_mail"]),
        ("windlass lanes pause l", ["letters"]),
        ("windlass schedules show ", ["nightly"]),
        ("windlass breakers reset s", ["smtp"]),
        ("windlass dead list --task o", ["other"]),
    ],
)
def test_names_come_from_the_database(filled: str, line: str, found: list[str]) -> None:
    assert complete(filled, line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("windlass jo", ["job", "jobs"]),
        ("windlass lanes ", ["drain", "list", "pause", "resume"]),
        ("windlass jobs --sta", ["--state"]),
        ("windlass jobs --state failed,p", ["failed,pending", "failed,paused"]),
        ("windlass settings get PICK", ["PICK_ORDER"]),
        ("windlass chores pause prom", ["promote"]),
    ],
)
def test_commands_options_and_fixed_names_are_completed(url: str, line: str, found: list[str]) -> None:
    assert sorted(complete(url, line)) == sorted(found)


@BOTH
def test_arguments_come_from_the_signature_of_the_task(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def greet(name: str, mood: Literal["glad", "sad"] = "glad", *, loud: bool = False) -> None:
        del name, mood, loud

    async def declare() -> None:
        async with app, app.working():
            pass

    asyncio.run(declare())
    assert complete(url, "windlass enqueue greet --arg ") == ["name=", "mood=", "loud="]
    assert complete(url, "windlass enqueue greet --arg name=Ann --arg mo") == ["mood="]
    assert complete(url, "windlass enqueue greet --arg mood=") == ["mood=glad", "mood=sad"]
    assert complete(url, "windlass enqueue greet --arg loud=t") == ["loud=true"]


@BOTH
def test_arguments_come_from_the_code_that_is_named(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "broken.py").write_text("print('out loud')\nraise RuntimeError('broken')\n")
    monkeypatch.chdir(tmp_path)
    assert complete(url, "windlass enqueue greet --arg ") == []
    assert complete(url, "windlass enqueue greet --app shop:app --arg ") == ["name=", "loud="]
    assert complete(url, "windlass enqueue greet --app shop:app --arg name=Ann --arg loud=") == ["loud=true", "loud=false"]
    for target in ("shop:app", "shop:nothing", "broken:app"):
        assert complete(url, f"windlass enqueue other --app {target} --arg ") == []


SHOP = """\
from windlass import Windlass

print("out loud")
app = Windlass()


@app.task
async def greet(name: str, *, loud: bool = False) -> None: ...
"""


def test_every_command_is_offered(url: str) -> None:
    assert complete(url, "windlass ") == sorted(COMMANDS)


def test_a_database_that_is_not_there_gives_no_names_and_no_error(tmp_path: object) -> None:
    assert complete(f"sqlite:///{tmp_path}/none.db", "windlass jobs --task ") == []
    assert complete("oracle://x", "windlass jobs --task ") == []


def test_a_database_that_does_not_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        assert complete(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x", "windlass jobs --task ") == []
        assert time.monotonic() - start < 8


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_it_can_read(windlass: Command, shell: str) -> None:
    script = windlass("completion", shell).stdout
    assert "_WINDLASS_COMPLETE" in script
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=script, text=True, check=True, timeout=60)


def test_a_shell_that_is_not_known_is_refused(windlass: Command) -> None:
    assert "'bash', 'zsh', 'fish'" in windlass("completion", "tcsh", code=2).stderr
