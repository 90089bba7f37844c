"""A terminal in a folder, with `windlass up` in another one: what the README and the tutorial ask their readers to have."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from windlass import Windlass
from windlass.cli.main import main
from windlass.core.job import CLOSED, WaitReason

_SHOWN = "http://127.0.0.1:8060"


class Terminal:
    """Runs lines as a reader would type them, in one folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put `windlass` and `python` on the path."""
        self.folder = folder
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", [*sys.path])
        tools = folder / "bin"
        tools.mkdir()
        for name, module in (("windlass", " -m windlass"), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
            (tools / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
        self.environment = kept | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        self._address = _SHOWN

    def type(self, line: str) -> str:
        """Run a line and give what it printed; an export lasts."""
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.environment[name] = value
            return ""
        if line.startswith("windlass "):
            return self._run_here(line)
        line = line.replace(_SHOWN, self._address).replace("curl ", "curl -sS --fail-with-body ")
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _run_here(self, line: str) -> str:
        """Run one of our own commands in this process: a dozen of new ones would take most of the test's time."""
        try:
            result = CliRunner().invoke(main, shlex.split(line)[1:], env=self.environment)
        finally:
            sys.modules.pop("jobs", None)
        assert result.exit_code == 0, (line, result.output, result.exception)
        return result.output

    @contextmanager
    def up(self, line: str) -> Iterator[None]:
        """Run `windlass up …` on a free port for as long as the block lasts, and end it with Ctrl-C."""
        typed = ["sh", "-c", f"exec {line.removesuffix(' ')} --port 0"]
        process = subprocess.Popen(typed, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            said = ""
            for told in process.stdout:
                said += told
                if "try:" in told:
                    break
            [self._address] = re.findall(r"listening on (\S+)", said)
            [self.environment["TOKEN"]] = set(re.findall(r"wdl_[\w-]+", said))
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
            process.communicate()


def wait_until_over(app: Windlass, task: str) -> None:
    """Wait until no job of a task is on its way."""
    late = time.monotonic() + 30
    while any(
        one.task == task and one.state not in CLOSED and one.wait_reason is not WaitReason.RECURRENCE for one in app.counts_sync()
    ):
        assert time.monotonic() < late, task
        time.sleep(0.02)
