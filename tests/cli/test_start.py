"""What it costs to start the command line, and how it answers when something is wrong."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windlass.cli.main import COMMANDS, main

ENGINE = (
    "windlass.app",
    "windlass.store",
    "windlass.client",
    "windlass.web",
    "windlass.config",
    "asyncio",
    "sqlite3",
    "psycopg",
    "rich",
)


def seconds(folder: Path, *command: str) -> float:
    """Measure a command as it starts the second time, with its byte code kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(6):
        start = time.perf_counter()
        environment = kept | {"PYTHONPYCACHEPREFIX": str(folder)}
        subprocess.run([sys.executable, *command], check=True, capture_output=True, timeout=60, env=environment)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def test_help_costs_little_and_loads_no_engine(tmp_path: Path) -> None:
    assert seconds(tmp_path, "-m", "windlass", "--help") < 10 * seconds(tmp_path, "-c", "pass")
    code = f"""
import sys
from windlass.cli.main import main
try:
    main(["--help"])
except SystemExit:
    pass
print([name for name in {ENGINE!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """Measure the processor time of a command as it starts the second time, with its byte code kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "WINDLASS_DATABASE_URL": f"sqlite:///{folder}/jobs.db"}
    times = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "windlass", *arguments], check=True, capture_output=True, timeout=60, env=environment
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times[1:])


def test_commands_cost_little_processor_time(tmp_path: Path) -> None:
    """Twice what is promised: 0.25 s for the help, 0.4 s for a list; a busy machine doubles it."""
    cpu_seconds(tmp_path, "migrate")
    assert cpu_seconds(tmp_path, "--help") < 0.5
    assert cpu_seconds(tmp_path, "jobs") < 0.8


UNNEEDED = (
    "rich",
    "pydantic",
    "psycopg",
    "tomllib",
    "shutil",
    "zipfile",
    "importlib.resources",
    "windlass.web",
    "windlass.upkeep",
    "windlass.store.nouns",
    "windlass.store.letters",
    "windlass.core.alerts",
    "windlass.core.crawl",
    "windlass.core.explain",
    "windlass.core.feed",
    "windlass.core.insights",
)
MOST_MODULES = 135
"""How many modules of ours a list may load; it is 125 now, of five hundred."""


def test_a_list_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    assert windlass(tmp_path, "migrate", WINDLASS_DATABASE_URL=url).returncode == 0
    code = f"""
import json, sys
from dataclasses import is_dataclass
sys.argv = ["windlass", "jobs"]
from windlass.__main__ import main
try:
    main()
except SystemExit:
    pass
loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] == "windlass"]
classes = [one for module in loaded for one in vars(module).values() if isinstance(one, type) and is_dataclass(one)]
print(json.dumps({{
    "unneeded": [name for name in {UNNEEDED!r} if name in sys.modules],
    "modules": len(loaded),
    "not late": [one.__name__ for one in classes if one.__dataclass_params__.frozen],
}}), file=sys.stderr)
"""
    environment = os.environ | {"WINDLASS_DATABASE_URL": url}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env=environment)
    found = json.loads(done.stderr)
    assert found["unneeded"] == []
    assert found["modules"] <= MOST_MODULES
    # A frozen dataclass is a `record`, which makes the methods that are used, and no others.
    assert found["not late"] == []


def test_garbage_is_collected_once_a_command_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("import gc\nprint(gc.isenabled(), gc.get_freeze_count() > 0)\n" + APP, encoding="utf-8")
    made = windlass(tmp_path, "enqueue", "add", "--app", "jobs:app", "--arg", "a=1", "--arg", "b=2")
    assert made.stdout.startswith("True True\n"), made.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_says_what_it_does(name: str) -> None:
    context = main.make_context("windlass", [name, "--help"], resilient_parsing=True)
    command = main.get_command(context, name)
    assert command is not None
    assert command.name == name
    assert command.help


def windlass(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "windlass", *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


APP = """
from windlass import Windlass

app = Windlass("sqlite:///mine.db", name="shop")


@app.task
def add(a: int, b: int) -> int:
    return a + b
"""


def test_an_application_checks_what_is_enqueued(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(APP, encoding="utf-8")
    made = windlass(tmp_path, "enqueue", "add", "--app", "jobs:app", "--arg", "a=1", "--arg", "b=2")
    assert (made.returncode, made.stdout) == (0, "windlass: job 1 is enqueued\n"), made.stderr
    wrong = windlass(tmp_path, "enqueue", "add", "--app", "jobs:app", "--arg", "a=one")
    assert (wrong.returncode, wrong.stderr.startswith("windlass: a: must be int")) == (2, True), wrong.stderr
    listed = windlass(tmp_path, "jobs", "--json", WINDLASS_DATABASE_URL="sqlite:///mine.db")
    assert (listed.returncode, '"task": "add"' in listed.stdout) == (0, True), listed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["jobs", "--database", "oracle://x"], 2, "oracle"),
        (["jobs"], 2, "there is no database 'windlass.db'"),
        (["retry", "1", "--database", "sqlite:///nowhere/x.db"], 2, "windlass migrate"),
        (["nothing"], 2, "there is no command"),
        (["jobs", "--limit", "0"], 2, "limit"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    done = windlass(tmp_path, *arguments)
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr
    assert list(tmp_path.iterdir()) == []
