"""A child process shows as much of its log as its worker does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHOP = """
import logging
from windlass import Windlass
app = Windlass("sqlite:///shop.db")
@app.task(isolation="process", max_attempts=1)
def pay() -> None:
    for level in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger("shop"), level)("told at %s", level)
"""


@pytest.mark.parametrize(
    ("level", "shown"),
    [("debug", ["debug", "info", "warning", "error"]), ("info", ["info", "warning", "error"]), ("error", ["error"])],
)
def test_a_child_process_logs_at_the_level_of_its_worker(tmp_path: Path, level: str, shown: list[str]) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    subprocess.run([sys.executable, "-c", "from shop import pay; pay.enqueue_sync()"], cwd=tmp_path, check=True, timeout=30)
    command = [sys.executable, "-m", "windlass", "worker", "shop:app", "--alone", "--log-level", level]
    told: list[str] = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        try:
            for line in worker.stderr:
                told += [line.partition("told at ")[2].split()[0]] if "told at " in line else []
                if told[-1:] == ["error"]:
                    break
        finally:
            worker.terminate()
    assert told == shown
