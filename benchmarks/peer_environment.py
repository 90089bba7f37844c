"""The programs of the peers, each in a virtual environment of its own that uv makes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peer_programs.program import About

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "benchmarks" / "peer_programs"
ENVIRONMENTS = ROOT / ".dev" / "peers"
_UV = ROOT / ".dev" / "uv" / "bin" / "uv"
_SCRIPT = re.compile(r"^# /// script\n((?:# .*\n)+)# ///$", re.MULTILINE)


class Unavailable(Exception):
    """A peer cannot be installed, started or measured; the message says why."""


class Choice(NamedTuple):
    """A program, what it keeps its jobs in, and the form of it that is meant where it has several on one kind of storage."""

    program: str
    storage: str
    form: str = ""


PEERS = {
    "windlass-postgres": Choice("windlass", "postgres"),
    "windlass-sqlite": Choice("windlass", "sqlite"),
    "windlass-inside": Choice("windlass", "sqlite", "inside"),
    "lean-postgres": Choice("lean", "postgres"),
    "lean-sqlite": Choice("lean", "sqlite"),
    "pgqueuer": Choice("pgqueuer", "postgres"),
    "procrastinate": Choice("procrastinate", "postgres"),
    "chancy": Choice("chancy", "postgres"),
    "saq-postgres": Choice("saq", "postgres"),
    "oban": Choice("oban", "postgres"),
    "dbos": Choice("dbos", "postgres"),
    "huey": Choice("huey", "sqlite", "synced"),
    "huey-unsynced": Choice("huey", "sqlite", "unsynced"),
    "saq-redis": Choice("saq", "redis"),
    "celery": Choice("celery", "redis"),
    "dramatiq": Choice("dramatiq", "redis"),
    "rq": Choice("rq", "redis"),
    "arq": Choice("arq", "redis"),
    "taskiq": Choice("taskiq", "redis"),
}
# Addresses that a program can read at its start; it is asked to describe itself before it gets a storage.
_NOWHERE = {"postgres": "postgresql://nowhere@/nowhere", "sqlite": "sqlite:///:memory:", "redis": "unix:///nowhere"}


class Program:
    """A peer's program in its environment."""

    def __init__(self, name: str) -> None:
        """Make the environment where it is missing or old; raises Unavailable where that fails."""
        choice = PEERS[name]
        self.name = name
        self.path = PROGRAMS / f"{choice.program}_program.py"
        self.storage = choice.storage
        self._variant = choice.form or choice.storage
        self.python = _environment(choice.program, self.path)
        self.about = self._described()

    def environment(self, address: str, more: Mapping[str, str], notes: Path | None = None) -> dict[str, str]:
        """Build what the program reads."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "WINDLASS_", "PYTHON"))}
        own = {"PEER_ADDRESS": address, "PEER_VARIANT": self._variant, "PEER_NOTES": str(notes or "")}
        return (
            kept
            | own
            | {"PYTHONPATH": str(PROGRAMS), "PATH": f"{self.python.parent}:{kept.get('PATH', os.defpath)}"}
            | dict(more)
        )

    def run(self, environment: dict[str, str], *words: str) -> dict[str, Any]:
        """Run the program to its end and read its answer; raises Unavailable with its last words where it fails."""
        command = [str(self.python), str(self.path), *words]
        try:
            done = subprocess.run(
                command, cwd=PROGRAMS, env=environment, capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired as late:
            raise Unavailable(f"`{words[0]}` did not end within {late.timeout:.0f} s") from late
        if done.returncode:
            raise Unavailable(f"`{words[0]}` ended with {done.returncode}: {last_words(done.stderr)}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def _described(self) -> About:
        found = self.run(self.environment(_NOWHERE[self.storage], {}), "describe")
        read: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
        return About(**read)


def last_words(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "without a word"


def _environment(name: str, path: Path) -> Path:
    """Make a virtual environment from the requirements at the head of a program; without any, it runs in ours."""
    head = _SCRIPT.search(path.read_text(encoding="utf-8"))
    if head is None:
        return Path(sys.executable)
    wanted = tomllib.loads("\n".join(line.removeprefix("# ") for line in head.group(1).splitlines()))
    interpreter = _interpreter(wanted["requires-python"])
    folder = ENVIRONMENTS / name
    stamp, python = folder / "installed", folder / "bin" / "python"
    block = f"{interpreter}\n{head.group(1)}"
    if stamp.is_file() and python.exists() and stamp.read_text(encoding="utf-8") == block:
        return python
    if not _UV.exists():
        raise Unavailable("uv is missing; start this by `python3 dev.py bench peers`")
    _run_uv("venv", "--quiet", "--clear", "--python", interpreter, str(folder))
    _run_uv("pip", "install", "--quiet", "--python", str(python), *wanted["dependencies"])
    stamp.write_text(block, encoding="utf-8")
    return python


def _interpreter(wanted: str) -> str:
    """Choose our own Python, so that no peer is compared on another one, unless it needs a newer one."""
    least = tuple(int(part) for part in wanted.removeprefix(">=").split("."))
    return sys.executable if sys.version_info[: len(least)] >= least else wanted


def _run_uv(*words: str) -> None:
    # Pythons of pyenv are not on the path by their numbers.
    pythons = [str(path) for path in sorted(Path.home().glob(".pyenv/versions/*/bin"), reverse=True)]
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    environment |= {"PATH": os.pathsep.join([str(Path(sys.executable).parent), *pythons, os.environ.get("PATH", os.defpath)])}
    done = subprocess.run([str(_UV), *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        text = " ".join(line.strip() for line in done.stderr.splitlines() if "warning" not in line.lower())
        raise Unavailable(f"uv {words[0]}: {text[:400]}")
