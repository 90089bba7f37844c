"""The leads puller of examples/, run as its page says."""

from __future__ import annotations

import ast
import csv
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "leads_puller"


def test_the_leads_puller_finds_each_lead_once() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py")], env=kept, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told, _, table = done.stdout.partition("name,phone\n")
    assert told.splitlines()[:2] == ["Berlin: 3 new, 0 known", "Berlin: 2 new, 1 known"]
    rows = list(csv.reader(table.strip().splitlines()))
    # Berlin's target is met with five, Bonn's three with the first page, and Ulm has nine in all.
    assert len(rows) == len({phone for _, phone in rows}) == 5 + 3 + 9


def test_the_worker_needs_nothing_but_the_standard_library_and_few_lines() -> None:
    text = (FOLDER / "worker.py").read_text()
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes}
    assert {name.partition(".")[0] for name in imported if name} <= sys.stdlib_module_names
    assert len(text.splitlines()) < 120
