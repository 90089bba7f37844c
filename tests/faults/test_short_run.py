"""The short form of `python3 dev.py faults`: two minutes of faults on each database, and the time to start, heal and stop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.__main__ import run_plan
from tests.faults.run import Plan
from tests.support.postgres_server import DSN_VARIABLE

SEED = 20260116
MINUTES = 2.0
PAUSE_S = 3.0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the processes under attack are found by /proc")
@pytest.mark.parametrize("database", ["postgres", "sqlite"])
def test_nothing_is_lost_stranded_or_run_twice_under_faults(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    minutes = float(os.environ.get("WINDLASS_TEST_FAULT_MINUTES", MINUTES))
    outcome = run_plan(Plan(database, SEED, minutes, pause_s=PAUSE_S), tmp_path)
    # Two minutes have few recoveries, and they depend on the machine: only `dev.py faults` judges how long they take.
    assert [each for each in outcome.violations if each.rule != "recovery"] == []
    assert len(outcome.case.faults) > 5 * minutes
    assert len(outcome.case.snapshot.jobs) > 500 * minutes
