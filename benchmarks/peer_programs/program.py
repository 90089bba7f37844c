"""What the programs of all peers share; each runs in an environment of its own, so this uses the standard library only."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

ADDRESS = os.environ.get("PEER_ADDRESS", "")
VARIANT = os.environ.get("PEER_VARIANT", "")
"""The form of the program that is meant: the kind of its storage, unless the harness names another."""
LANES = int(os.environ.get("PEER_LANES", "1"))
# The JSON around it is about 30 bytes.
FILLER = "x" * max(0, int(os.environ.get("PEER_PAYLOAD", "100")) - 30)
BULK = 1000
_NOTES = os.environ.get("PEER_NOTES", "")
_IS_TIMED = os.environ.get("PEER_MEASURE") == "pickup"
_PAUSE_S = 0.02


def lane_of(number: int) -> str:
    """Return the lane, queue or entrypoint that a job goes to."""
    return f"lane-{number % LANES}"


def lanes() -> list[str]:
    """List every lane."""
    return [f"lane-{number}" for number in range(LANES)]


@dataclass(frozen=True)
class About:
    """What the harness must know of a peer, and what the page prints."""

    title: str
    package: str
    tuning: str
    history: str
    crash: str
    """What survives the crash of a worker and of the machine."""
    left: str
    """SQL (Lua on Redis) that returns 0 once nothing waits or runs any more."""
    ended: str = ""
    """SQL that counts finished jobs, where the peer keeps them."""
    finished: tuple[str, ...] = ()
    """SQL that puts {rows} finished jobs into the peer's tables, as its own worker would leave them."""
    waiting: tuple[str, ...] = ()
    """SQL that puts {rows} recurring jobs, due tomorrow, into the peer's tables."""
    has_lanes: bool = False
    has_bulk: bool = True
    is_limit: bool = False
    """A bare table without rules: the most that the database gives, not a queue."""
    is_inside: bool = False
    """The program that enqueues runs the jobs as well; only pick-up is measured."""
    versions: tuple[str, ...] = field(default=())
    """Further packages whose version matters."""


class Peer:
    """A queue as the harness uses it."""

    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None

    async def prepare(self) -> None:
        """Make the tables."""

    async def open(self) -> None:
        """Connect as a producer does."""

    async def close(self) -> None:
        """Leave."""

    async def enqueue(self, number: int) -> None:
        """Enqueue one job and return after its commit."""
        raise NotImplementedError

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue many jobs by the documented bulk call."""
        for number in numbers:
            await self.enqueue(number)

    def work(self) -> None:
        """Run jobs until a signal ends it."""
        raise NotImplementedError


class Notes:
    """What the handlers of this process have run, in a file that outlives it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: memoryview | None = None
        self._moments = -1
        # A pool of processes forks after the import, and each child keeps its own notes.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._cells = None

    def _open(self) -> memoryview:
        path = Path(_NOTES) / f"{os.getpid()}.runs"
        path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
        if _IS_TIMED:
            self._moments = os.open(path.with_suffix(".moments"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return self._cells

    def run(self, number: int) -> None:
        """Note that a job has begun; the first thing that every handler does."""
        now = time.monotonic_ns()
        with self._lock:
            cells = self._cells or self._open()
            if _IS_TIMED:
                os.write(self._moments, number.to_bytes(8, "little") + now.to_bytes(8, "little"))
            if not cells[0]:
                cells[1] = now
            cells[0] += 1


note = Notes().run


def runs_noted(folder: Path) -> tuple[int, int]:
    """Sum up the runs that all processes have noted; returns their number and the moment of the first in nanoseconds."""
    cells = [memoryview(path.read_bytes()).cast("Q") for path in folder.glob("*.runs") if path.stat().st_size == 16]
    begun = [cell for cell in cells if cell[0]]
    return sum(cell[0] for cell in begun), min((cell[1] for cell in begun), default=0)


def moments_noted(folder: Path) -> Iterator[tuple[int, int]]:
    """List the number of each job and the nanosecond at which its handler began."""
    for path in folder.glob("*.moments"):
        cells = memoryview(path.read_bytes()).cast("Q")
        yield from zip(cells[::2], cells[1::2], strict=True)


async def _bulk(peer: Peer, jobs: int) -> dict[str, Any]:
    began = time.perf_counter()
    for start in range(0, jobs, BULK):
        await peer.enqueue_many(range(start, min(start + BULK, jobs)))
    return {"jobs": jobs, "seconds": time.perf_counter() - began}


async def _single(peer: Peer, seconds: float) -> dict[str, Any]:
    for number in range(20):
        await peer.enqueue(number)
    began, jobs = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        await peer.enqueue(jobs)
        jobs += 1
    return {"jobs": jobs, "seconds": spent}


async def _pickup(peer: Peer, picks: int, seconds: float) -> dict[str, Any]:
    """Enqueue one job at a time, each after the one before it has begun."""
    rng, asked = random.Random(7), []
    until = time.monotonic() + seconds
    for number in range(picks):
        if time.monotonic() > until:
            break
        await asyncio.sleep(_PAUSE_S * (1 + rng.random()))
        asked.append((number, time.monotonic_ns()))
        await peer.enqueue(number)
        while (is_waiting := runs_noted(Path(_NOTES))[0] < len(asked)) and time.monotonic() < until:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.005)
        if is_waiting:
            break
    return {"asked": asked}


async def _produce(peer: Peer, verb: str, sizes: list[str]) -> dict[str, Any]:
    if verb == "prepare":
        await peer.prepare()
        return {}
    await peer.open()
    try:
        if verb == "bulk":
            return await _bulk(peer, int(sizes[0]))
        if verb == "single":
            return await _single(peer, float(sizes[0]))
        return await _pickup(peer, int(sizes[0]), float(sizes[1]))
    finally:
        await peer.close()


def main(peer: Peer, about: About) -> None:
    """Run what the command line asks for: describe, prepare, bulk, single, pickup or work."""
    verb, *sizes = sys.argv[1:]
    if verb == "describe":
        packages = [f"{name} {version(name)}" for name in (about.package, *about.versions) if name]
        print(json.dumps(asdict(about) | {"versions": [*packages, f"Python {sys.version.split()[0]}"]}))
    elif verb == "work":
        peer.work()
    else:
        with asyncio.Runner(loop_factory=peer.loop_factory) as runner:
            print(json.dumps(runner.run(_produce(peer, verb, sizes))))
