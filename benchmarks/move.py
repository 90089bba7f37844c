"""A million jobs moved by `windlass move`, which is killed ten times and goes on: how long it takes, and whether all is equal."""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

# In place of this folder, whose modules have names of others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.moving.comparing import compare
from tests.store.builders import a_lease
from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.core.job import Claimed, NewJob
from windlass.core.outcome import Failure, Outcome, Raised, Returned, Run, decide
from windlass.core.payload import JsonText
from windlass.store import open_store

_BATCH = 1000
_KINDS = 20
_RETRIED, _DEAD, _LATER = 14, 15, 16
_GOAL_S = 600.0
# What the bar shows: the table with how much of all is copied; then what is checked.
_COPIED = re.compile(r"windlass_\w+, (\d+) %")
_CHECKED = re.compile(r"checking \w+")


class Attempt(NamedTuple):
    """One start of the command: what it printed (None where it was killed), and how long it took to copy and in all."""

    printed: str | None
    copying_s: float
    seconds: float


async def fill(url: str, jobs: int) -> None:
    """Let jobs come to their ends by the verbs of the store: most are done, some wait for their second try or are dead."""
    began = time.monotonic()
    rng = Random(1)
    store = open_store(url, rng=rng)
    try:
        for start in range(0, jobs, _BATCH):
            await store.enqueue([_job(number) for number in range(start, min(start + _BATCH, jobs))])
            # Those that were enqueued last wait, as in a queue that was stopped.
            if start + _BATCH < jobs:
                claimed = await store.claim(await store.slices(), _BATCH, a_lease("bench"), started=True)
                endings = [decide(job, _outcome(job), _run(job), now=job.claimed_at, rng=rng) for job in claimed]
                await store.finish(endings)
    finally:
        await store.aclose()
    print(f"{jobs:,} jobs came to their ends in {time.monotonic() - began:.0f} s", flush=True)


def _job(number: int) -> NewJob:
    kind = number % _KINDS
    return NewJob(
        task=f"task-{number % 7}",
        lane=f"lane-{number % 3}",
        payload=JsonText(f'{{"order":{number},"customer":"Żółw {number % 997}","lines":[1,2,3],"total":{number % 100}.5}}'),
        max_attempts=1 if kind == _DEAD else 3,
        delay=timedelta(days=1) if kind >= _LATER else None,
        unique_key=f"order-{number}" if kind >= _LATER else None,
        correlation_id=f"cart-{number // 3}",
    )


def _outcome(job: Claimed) -> Outcome:
    kind = (job.id - 1) % _KINDS
    if kind in {_RETRIED, _DEAD}:
        return Raised(Failure(f"order {job.id % 9} is broken", "ValueError", "Traceback (most recent call last):\n  ..."))
    return Returned(f'{{"sent":{job.id}}}')


def _run(job: Claimed) -> Run:
    return Run(job.claimed_at, job.claimed_at + timedelta(milliseconds=job.id % 1000), cpu_time_ms=job.id % 50)


def attempt(source: str, target: str, *, kill_at: float | None, options: list[str]) -> Attempt:
    """Start the command with a terminal for its bar, and kill it once it has copied so much of all (0 to 1)."""
    ours, theirs = pty.openpty()
    typed = [sys.executable, "-m", "windlass", "move", source, target, *options]
    began = time.monotonic()
    copying_s = 0.0
    with subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"COLUMNS": "120"}) as process:
        os.close(theirs)
        try:
            while shown := _read(ours):
                if _CHECKED.search(shown) and not copying_s:
                    copying_s = time.monotonic() - began
                seen = _COPIED.findall(shown)
                if kill_at is not None and seen and int(seen[-1]) >= kill_at * 100:
                    process.kill()
                    return Attempt(None, 0.0, time.monotonic() - began)
        finally:
            os.close(ours)
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    if process.returncode:
        sys.exit(f"the move ended with {process.returncode}: {printed}{shown}")
    seconds = time.monotonic() - began
    return Attempt(printed, copying_s or seconds, seconds)


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        # The way in which Linux tells that nobody writes any more.
        return ""


def move(source: str, target: str, points: list[float], options: list[str]) -> float:
    """Move with a kill at each point, then to the end; prints every attempt and returns the seconds of all together."""
    spent = 0.0
    for point in points:
        spent += (killed := attempt(source, target, kill_at=point, options=options)).seconds
        if killed.printed is not None:
            sys.exit(f"the move ended before it could be killed at {point:.0%}")
        print(f"  killed at {point:.0%}, after {killed.seconds:.0f} s", flush=True)
    last = attempt(source, target, kill_at=None, options=options)
    told = (last.printed or "").strip().removeprefix("windlass: ")
    print(f"  {told}; the last attempt copied for {last.copying_s:.0f} s and took {last.seconds:.0f} s", flush=True)
    return spent + last.seconds


def is_equal(source: str, target: str) -> bool:
    """Compare row by row; prints how many there are, and the first that differ."""
    began = time.monotonic()
    counts, different = compare(source, target)
    verdict = f"{len(different)} DIFFER, among them {different[:3]}" if different else "all equal"
    seconds = time.monotonic() - began
    print(f"  {sum(counts.values()):,} rows of {len(counts)} tables compared in {seconds:.0f} s: {verdict}", flush=True)
    return not different


def main() -> int:
    """Move from SQLite to PostgreSQL, and from there to SQLite; says by its exit code whether all was equal and quick enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--no-check", action="store_true", help="leave out the deep check at the end")
    parser.add_argument("--folder", type=Path, help="where the files are made; default: a temporary folder")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    print(f"seed {seed}", flush=True)
    rng = Random(seed)
    given = ["--no-check"] if options.no_check else []
    is_good = True
    with TemporaryDirectory(dir=options.folder) as made, running_postgres() as server, fresh_postgres(server) as postgres:
        first, last = (f"sqlite:///{made}/{name}.db" for name in ("first", "last"))
        migrate_sqlite(Path(made, "first.db"))
        asyncio.run(fill(first, options.jobs))
        for name, source, target in (("SQLite -> PostgreSQL", first, postgres), ("PostgreSQL -> SQLite", postgres, last)):
            print(name, flush=True)
            seconds = move(source, target, sorted(rng.random() for _ in range(options.kills)), given)
            is_good &= is_equal(source, target) and seconds <= _GOAL_S
            print(f"{name}: {seconds:.0f} s with {options.kills} kills, goal {_GOAL_S:.0f} s", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
