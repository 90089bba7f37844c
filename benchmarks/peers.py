"""Windlass beside other queues: drain, enqueue, pick-up, memory and growth, each peer tuned by its own documentation."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# In place of this folder, whose modules have names of others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.peer_environment import ENVIRONMENTS, PEERS, Program, Unavailable
from benchmarks.peer_growth import AXES, Growth
from benchmarks.peer_measures import Bench, Load
from benchmarks.peer_page import GROWTH_PAGE, PAGE, print_growth, print_table, write_growth, write_page
from benchmarks.peer_results import Comparison, Figures
from benchmarks.peer_storage import Storages
from tests.support.postgres_server import PostgresUnavailable

MEASURES = ("drain", "bulk", "single", "pickup", "grow")
# A drain should last about so long: long enough that its start and end do not matter.
DRAIN_S = 4.0
PICKUP_S = 30.0
FEWEST_JOBS = 300


class Progress:
    """Prints what is being done and what came out, as it happens."""

    def __init__(self) -> None:
        """Count from now."""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the minutes that have passed."""
        print(f"{(time.monotonic() - self._began) / 60:6.1f} min  {text}", file=sys.stderr, flush=True)


class Run:
    """One comparison, from the installing of the peers to the table."""

    def __init__(self, options: argparse.Namespace, storages: Storages, folder: Path) -> None:
        """Prepare nothing yet."""
        self._options = options
        self._storages = storages
        self._folder = folder
        self._progress = Progress()
        self._benches: dict[str, Bench] = {}
        self._jobs: dict[str, int] = {}
        self.comparison = Comparison(rounds=options.rounds, is_reduced=options.quick or options.loaded)

    def prepare(self, names: Iterable[str]) -> None:
        """Install every peer and make its tables; one that fails is listed with the reason."""
        for name in names:
            self._progress.say(f"preparing {name}")
            try:
                program = Program(name)
                self.comparison.figures[name] = Figures(program.about)
                self._benches[name] = Bench(program, self._storages.of(program.storage, self._folder))
            except (Unavailable, OSError, PostgresUnavailable) as error:
                self._lose(name, str(error).splitlines()[0])

    def size(self) -> None:
        """Find how many jobs each peer drains in a few seconds."""
        for name, bench in list(self._benches.items()):
            if bench.about.is_inside:
                continue
            try:
                rate = bench.drain(Load(FEWEST_JOBS)).rate
                if rate * DRAIN_S > 10 * FEWEST_JOBS and not self._options.quick:
                    rate = bench.drain(Load(10 * FEWEST_JOBS)).rate
            except Unavailable as error:
                self._lose(name, str(error))
                continue
            jobs = min(self._options.jobs, max(FEWEST_JOBS, int(rate * DRAIN_S) // 100 * 100))
            self._jobs[name] = self.comparison.figures[name].jobs = jobs
            self._progress.say(f"{name}: about {rate:,.0f} jobs a second, so it drains {jobs:,}")

    def measure(self) -> None:
        """Measure in rounds; inside a round every peer has its turn at one measure before the next begins."""
        wanted = self._options.measures
        for turn in range(1, self._options.rounds + 1):
            for processes in (1, 2) if {"drain", "bulk"} & set(wanted) else ():
                self._turn(turn, f"drain, {processes} process{'es' * (processes > 1)}", self._drain(processes))
            if "single" in wanted:
                self._turn(turn, "one at a time", self._single)
            if "pickup" in wanted:
                self._turn(turn, "pick-up", self._pickup)

    def grow(self) -> None:
        """Measure how the drain changes as one thing grows."""
        chosen = self._growing()
        for turn in range(1, self._options.rounds + 1):
            for axis in AXES:
                for size in axis.sizes(is_huge=self._options.huge, is_quick=self._options.quick):
                    for name in chosen:
                        self._grow_one(turn, axis, size, name)

    def _grow_one(self, turn: int, axis: Growth, size: int, name: str) -> None:
        about = self._benches[name].about
        if not axis.fits(about):
            return
        load = axis.load(Load(self._jobs[name]), size)
        what = f"round {turn}: {axis.title} {size:,}, {name}"
        try:
            drained = self._benches[name].drain(load)
        except Unavailable as error:
            self.comparison.grown_failures[axis.title, size, name] = str(error)
            self._progress.say(f"{what}: {error}")
            return
        self.comparison.grown.setdefault((axis.title, size), {}).setdefault(name, []).append(drained.rate)
        self._progress.say(f"{what}: {drained.rate:,.0f} jobs a second")

    def _growing(self) -> list[str]:
        """Choose Windlass and the fastest peers on PostgreSQL that can be filled."""
        ours = [name for name in self._benches if PEERS[name].program == "windlass" and name in self._jobs]
        others = {
            name: self.comparison.figures[name]
            for name, bench in self._benches.items()
            if name not in ours and name in self._jobs and PEERS[name].storage == "postgres" and bench.about.finished
        }
        ranked = sorted(others, key=lambda name: others[name].drain_rate(1) or others[name].jobs, reverse=True)
        return [*ours, *ranked[: self._options.growing]]

    def _turn(self, turn: int, what: str, step: Callable[[str, Bench], str]) -> None:
        for number, (name, bench) in enumerate(list(self._benches.items()), 1):
            figures = self.comparison.figures[name]
            if (
                what in figures.failures
                or (bench.about.is_inside and what != "pick-up")
                or (bench.about.is_limit and what == "pick-up")
            ):
                continue
            try:
                found = step(name, bench)
            except Unavailable as error:
                figures.failures[what] = found = str(error)
            self._progress.say(
                f"round {turn} of {self._options.rounds}, {what}, {number} of {len(self._benches)}, {bench.about.title}: {found}"
            )

    def _drain(self, processes: int) -> Callable[[str, Bench], str]:
        def step(name: str, bench: Bench) -> str:
            drained = bench.drain(replace(Load(self._jobs[name]), processes=processes))
            self.comparison.figures[name].drained.setdefault(processes, []).append(drained)
            return f"{drained.rate:,.0f} jobs a second"

        return step

    def _single(self, name: str, bench: Bench) -> str:
        rate = bench.single(1.0 if self._options.quick else 3.0)
        self.comparison.figures[name].single.append(rate)
        return f"{rate:,.0f} jobs a second"

    def _pickup(self, name: str, bench: Bench) -> str:
        waits = bench.pickup(self._options.picks + 5, PICKUP_S)
        self.comparison.figures[name].pickup.extend(waits)
        return f"{len(waits)} jobs" + (f", median {sorted(waits)[len(waits) // 2]:.1f} ms" if waits else "")

    def _lose(self, name: str, reason: str) -> None:
        self.comparison.lost[name] = reason
        self.comparison.figures.pop(name, None)
        self._benches.pop(name, None)
        self._progress.say(f"{name} is left out: {reason}")


def _options() -> argparse.Namespace:
    def names(known: Iterable[str]) -> Callable[[str], list[str]]:
        def read(text: str) -> list[str]:
            chosen = text.split(",")
            if unknown := set(chosen) - set(known):
                raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
            return chosen

        return read

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=names(PEERS), default=list(PEERS), help=f"of {','.join(PEERS)}")
    parser.add_argument("--measures", type=names(MEASURES), default=list(MEASURES), help=f"of {','.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=None, help="how often everything is measured (3, quick: 1)")
    parser.add_argument("--jobs", type=int, default=None, help="the most jobs that a drain has (200000, quick: 2000)")
    parser.add_argument("--picks", type=int, default=None, help="jobs of a pick-up in each round (200, quick: 40)")
    parser.add_argument("--growing", type=int, default=2, help="how many peers on PostgreSQL grow beside Windlass (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that everything works")
    parser.add_argument("--huge", action="store_true", help="grow to 10 million finished jobs")
    parser.add_argument("--loaded", action="store_true", help="mark the page: other work shared the machine")
    parser.add_argument("--redis-fsync", choices=("always", "everysec", "no"), default="always", help="appendfsync (%(default)s)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}, {GROWTH_PAGE.name} from this run")
    options = parser.parse_args()
    for name, usual, quick in (("rounds", 3, 1), ("jobs", 200_000, 2_000), ("picks", 200, 40)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
    return options


def main() -> int:
    """Run what the command line asks for, and print it."""
    options: Any = _options()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="peers-") as place, Storages(ENVIRONMENTS / "redis-server", options.redis_fsync) as storages:
        run = Run(options, storages, Path(place))
        run.prepare(options.peers)
        run.size()
        run.comparison.storages = {kind: storage.describe() for kind, storage in storages.used.items()}
        run.measure()
        print_table(run.comparison)
        # A page shows all measures or none. Already now: growth takes long.
        if options.write and {"drain", "single", "pickup"} <= set(options.measures):
            write_page(run.comparison)
            print(f"\nwritten: docs/{PAGE.name}")
        if "grow" in options.measures:
            run.grow()
            print_growth(run.comparison)
            if options.write:
                write_growth(run.comparison)
                print(f"\nwritten: docs/{GROWTH_PAGE.name}")
    return 0 if run.comparison.figures else 1


if __name__ == "__main__":
    sys.exit(main())
