"""`python3 dev.py faults`: attacks real processes on a real database and judges what is left."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import sys
from pathlib import Path

from tests.faults import report
from tests.faults.run import FaultRun, Outcome, Plan, new_folder
from tests.support.postgres_server import DSN_VARIABLE


def say(text: str) -> None:
    print(f"faults: {text}", flush=True)


def run_plan(plan: Plan, folder: Path) -> Outcome:
    """Run a plan, print what it came to, and keep report and time line in the folder."""
    say(f"{plan.database}, seed {plan.seed}, {plan.minutes:g} minutes; report and logs in {folder}")
    outcome = asyncio.run(FaultRun(plan, folder, say).run())
    report.add_slow_recoveries(outcome)
    report.write(outcome, folder)
    print()
    for line in report.lines(outcome):
        print(line, flush=True)
    if not outcome.violations:
        shutil.rmtree(folder / "ledgers", ignore_errors=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev.py faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long faults are injected (default 2)")
    parser.add_argument(
        "--seed", type=int, help="the same seed plans the same kinds of faults at the same times; default: by chance"
    )
    parser.add_argument("--database", choices=("sqlite", "postgres"), help="default: one after the other")
    parser.add_argument("--only", default="", help="only these kinds of faults, with commas between them")
    parser.add_argument("--rate", type=float, default=180.0, help="how many jobs a second to enqueue at most (default 180)")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds from one fault to the next, on average (default 4)")
    parser.add_argument("--folder", type=Path, help="where to leave report, time line and logs; default: a new one")
    asked = parser.parse_args()
    # A server that is not ours could be neither stopped nor stood before.
    os.environ.pop(DSN_VARIABLE, None)
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    only = frozenset(filter(None, asked.only.split(",")))
    is_sound = True
    for database in (asked.database,) if asked.database else ("postgres", "sqlite"):
        folder = new_folder() if asked.folder is None else asked.folder / database
        folder.mkdir(parents=True, exist_ok=True)
        plan = Plan(database, seed, asked.minutes, only, asked.rate, asked.pause)
        is_sound &= not run_plan(plan, folder).violations
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
