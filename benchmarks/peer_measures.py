"""Drain, enqueue and pick-up of one peer, each on an empty storage of its own and judged by what that storage says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peer_environment import PROGRAMS, Program, Unavailable, last_words
from benchmarks.peer_programs.program import About, moments_noted, runs_noted
from benchmarks.peer_storage import Storage
from benchmarks.process_costs import cpu_s, family, peak_mib

_START_S = 60.0
_DRAIN_S = 90.0
_STOP_S = 3.0
_POLL_S = 0.01


@dataclass(frozen=True)
class Drained:
    """What a drain measured."""

    rate: float
    bulk_rate: float
    worker_us: float
    """Processor time of the workers for each job, in microseconds."""
    server_us: float | None
    peak_mib: float
    """The most memory that the workers held, all processes added up."""
    repeats: int
    """Runs beyond one for each job."""


@dataclass(frozen=True)
class Load:
    """What is drained."""

    jobs: int
    processes: int = 1
    payload: int = 100
    lanes: int = 1
    finished: int = 0
    waiting: int = 0


class Workers:
    """Worker processes of a peer, and what they have noted."""

    def __init__(self, program: Program, address: str, notes: Path, *, number: int, settings: dict[str, str]) -> None:
        """Start them."""
        self._notes = notes
        self._log = notes / "log"
        environment = program.environment(address, settings, notes)
        with self._log.open("wb") as log:
            self._processes = [
                subprocess.Popen(
                    [str(program.python), str(program.path), "work"],
                    cwd=PROGRAMS,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # A group of its own, so that children which outlive it can be ended.
                    start_new_session=True,
                )
                for _ in range(number)
            ]

    def runs(self) -> int:
        """Return how many jobs have begun."""
        return runs_noted(self._notes)[0]

    def first_ns(self) -> int:
        """Return when the first job began."""
        return runs_noted(self._notes)[1]

    def cpu_s(self) -> float:
        """Return the processor time of all, with their children."""
        return sum(cpu_s(one) for process in self._processes for one in family(process.pid))

    def peak_mib(self) -> float:
        """Return the most memory of all, with their children."""
        return sum(peak_mib(one) for process in self._processes for one in family(process.pid))

    def wait(self, is_done: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait for a condition; raises Unavailable where a worker ends or the time is over."""
        until = time.monotonic() + seconds
        while not is_done():
            if any(process.poll() is not None for process in self._processes):
                raise Unavailable(f"its worker ended: {self._words()}")
            if time.monotonic() > until:
                raise Unavailable(f"{what} took more than {seconds:.0f} s; {self.runs()} jobs had begun: {self._words()}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Ask them to stop, then end them with all they have started: their storage is thrown away."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _STOP_S
        for process in self._processes:
            # Looked at but not reaped, so that its number cannot become another's before its group is ended.
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None and time.monotonic() < until:
                time.sleep(_POLL_S)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _words(self) -> str:
        return last_words(self._log.read_text(encoding="utf-8", errors="replace"))


class Bench:
    """A peer on its storage."""

    def __init__(self, program: Program, storage: Storage) -> None:
        """Make its tables once."""
        self.program = program
        self.about: About = program.about
        self._storage = storage
        program.run(program.environment(storage.template(program.name), {}), "prepare")

    def drain(self, load: Load) -> Drained:
        """Enqueue with no worker running, then start workers; the end is when the storage has nothing left."""
        with self._place(load) as (address, notes, settings):
            sent = self.program.run(self.program.environment(address, settings), "bulk", str(load.jobs))
            self._storage.settle(address)
            workers = Workers(self.program, address, notes, number=load.processes, settings=settings)
            try:
                return self._drained(load, address, workers, bulk_rate=load.jobs / sent["seconds"])
            finally:
                workers.stop()

    def _drained(self, load: Load, address: str, workers: Workers, *, bulk_rate: float) -> Drained:
        workers.wait(lambda: workers.runs() > 0, "the first job", _START_S)
        before, begun, server_before = workers.cpu_s(), workers.runs(), self._storage.cpu_s()
        # The notes cost the storage nothing, so it is asked only when they say that all have begun.
        workers.wait(lambda: workers.runs() >= load.jobs, f"{load.jobs} jobs", _DRAIN_S)
        workers.wait(lambda: self._storage.ask(address, self.about.left) == 0, "an empty storage", _DRAIN_S)
        ended_ns = time.monotonic_ns()
        after, server_after, runs = workers.cpu_s(), self._storage.cpu_s(), workers.runs()
        if self.about.ended and (kept := self._storage.ask(address, self.about.ended)) != load.jobs + load.finished:
            raise Unavailable(f"its storage says that {kept} of {load.jobs} jobs have ended")
        share = 1e6 / max(1, load.jobs - begun)
        return Drained(
            rate=load.jobs / ((ended_ns - workers.first_ns()) / 1e9),
            bulk_rate=bulk_rate,
            worker_us=(after - before) * share,
            server_us=None if server_before is None or server_after is None else (server_after - server_before) * share,
            peak_mib=workers.peak_mib(),
            repeats=runs - load.jobs,
        )

    def single(self, seconds: float) -> float:
        """Enqueue one after another with no worker running; returns jobs per second."""
        with self._place(Load(0)) as (address, _, settings):
            sent = self.program.run(self.program.environment(address, settings), "single", str(seconds))
        return float(sent["jobs"]) / float(sent["seconds"])

    def pickup(self, picks: int, seconds: float) -> list[float]:
        """Enqueue one job at a time on an idle worker; returns milliseconds from before the call to the handler's first line."""
        with self._place(Load(0)) as (address, notes, usual):
            settings = usual | {"PEER_MEASURE": "pickup"}
            number = 0 if self.about.is_inside else 1
            workers = Workers(self.program, address, notes, number=number, settings=settings)
            try:
                if number:
                    self._warm(workers, address, notes, settings)
                environment = self.program.environment(address, settings, notes)
                asked = dict(self.program.run(environment, "pickup", str(picks), str(seconds))["asked"])
                begun = dict(moments_noted(notes))
            finally:
                workers.stop()
        # The first ones find code that has never run and connections that are not open yet.
        return [(begun[number] - at) / 1e6 for number, at in asked.items() if number in begun and number >= 5]

    def _warm(self, workers: Workers, address: str, notes: Path, settings: dict[str, str]) -> None:
        """Wait until the worker runs jobs, then forget what it has noted."""
        self.program.run(self.program.environment(address, settings), "bulk", "1")
        workers.wait(lambda: workers.runs() > 0, "the first job", _START_S)
        workers.wait(lambda: self._storage.ask(address, self.about.left) == 0, "an empty storage", _DRAIN_S)
        for path in (*notes.glob("*.moments"), *notes.glob("*.runs")):
            with path.open("r+b") as file:
                file.write(bytes(16)) if path.suffix == ".runs" else file.truncate(0)

    @contextmanager
    def _place(self, load: Load) -> Iterator[tuple[str, Path, dict[str, str]]]:
        with TemporaryDirectory(prefix="peer-notes-") as folder:
            address = self._storage.fresh(self.program.name)
            sizes = {"filler": "x" * 70}
            for statements, rows in ((self.about.finished, load.finished), (self.about.waiting, load.waiting)):
                if rows:
                    self._storage.execute(address, [statement.format(rows=rows, **sizes) for statement in statements])
            yield address, Path(folder), {"PEER_PAYLOAD": str(load.payload), "PEER_LANES": str(load.lanes)}
