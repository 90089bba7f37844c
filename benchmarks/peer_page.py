"""Prints a comparison on the terminal and writes it as a page of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path

from benchmarks.peer_environment import PEERS
from benchmarks.peer_growth import AXES
from benchmarks.peer_results import Comparison, Figures

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
GROWTH_PAGE = DOCS / "benchmarks-growth.md"
KINDS = {"postgres": "PostgreSQL", "sqlite": "SQLite", "redis": "Redis"}
HEADS = (
    "",
    "drain, 1 process",
    "drain, 2 processes",
    "of the lean limit",
    "bulk enqueue",
    "one at a time",
    "pick-up p50 / p90 / p99 (ms)",
    "worker CPU (µs a job)",
    "server CPU (µs a job)",
    "memory (MiB)",
)
SHORT_HEADS = ("peer", "drain 1", "drain 2", "of lean", "bulk", "single", "pick-up (ms)", "worker µs", "server µs", "MiB")
INTRODUCTION = """\
`python3 dev.py bench peers` measures Windlass beside other queues on one machine, in one run, and writes this page
(`--write`). It installs each peer into an environment of its own, starts PostgreSQL and Redis itself, and needs nothing else;
a peer that cannot be installed is listed with the reason. `--peers`, `--measures`, `--rounds`, `--jobs` and `--quick` choose
less. Only numbers of the same run may be compared: another machine, another disk or another load gives others.
"""
GROWTH = """\
After this page you know how the rate of a drain (jobs a second) changes while one thing grows: finished jobs that are kept,
processes, lanes, payload, schedules. `python3 dev.py bench peers --measures grow` measures it on one machine, in one run, and
writes this page (`--write`); `--huge` adds ten million finished jobs. How a drain is measured and each queue is set up is on the
page of [benchmarks](benchmarks.md). Only numbers of one run may be compared.
"""
REDUCED = """\
> A reduced run, made while other work shared the machine. Waiting for the disk and the processor is in all of its times; CPU
> for each job is the steadiest of its numbers.
"""
METHOD = """\
- **Jobs** do nothing, asynchronously where the peer can, and carry about 100 bytes. Jobs that do something hide these
  differences.
- **Drain**: all jobs are enqueued with no worker running, statistics and a checkpoint are taken, then the workers start. The
  rate counts from the first job's first line until the peer's own storage has nothing left. Every job must have run (runs
  beyond one for each are listed), and where a peer keeps its finished jobs, as many must be there. Each peer drains as many
  as it does in about four seconds, but at most 200,000 (`--jobs`).
- **Bulk** is the peer's documented bulk call, 1,000 jobs each; **one at a time** awaits each enqueue, with its commit, before
  the next.
- **Pick-up**: the worker is idle; another process enqueues one job, waits until it has begun, pauses 20 to 40 ms, and goes
  on. Measured from just before the call of enqueue to the handler's first line.
- **CPU** is user and system time of the worker's processes and of the database server between the first job and the end;
  **memory** is the most that one worker held (VmHWM, its child processes added).
- Rounds are interleaved: every peer has its turn at a measure before the next measure begins. Medians over {rounds} round{s};
  pick-up over the jobs of all rounds. Everything starts on an empty database of its own.
- Every commit is synced: PostgreSQL and SQLite as described, Redis with `appendfsync always`. Everybody logs warnings only.
- The **lean limit** is a table with ten columns and one index, claimed and finished 200 at a time over one blocking
  connection, without leases, retries, history, lanes or counts. It is no queue; it shows what the database gives on this
  machine.
"""
SET_UP = """\
Each is set up by its documentation or the docstrings of the installed package; sizes such as concurrency come from short trials,
also for Windlass. History and retention are in their default form.
"""
NOTES = {
    "postgres": "The lean limit does only a part of a queue's work.\n",
    "sqlite": """\
A file has one writer at a time: processes that work on one file take turns.
""",
    "redis": """\
With `appendfsync always`, so that a finished enqueue survives a crash of the machine as it does on the databases above. Redis as
it is usually run (`everysec`, or no log at all) is faster, and may lose the last second or everything; `--redis-fsync everysec`
measures that.
""",
}
Value = Callable[[Figures], float | None]
COMPARED: tuple[tuple[str, Value, bool], ...] = (
    ("drain with one process", lambda one: one.drain_rate(1), False),
    ("drain with two processes", lambda one: one.drain_rate(2), False),
    ("bulk enqueue", lambda one: one.bulk_rate(), False),
    ("enqueue one at a time", lambda one: one.single_rate(), False),
    ("pick-up, median (ms)", lambda one: one.pickup_ms(50), True),
    ("pick-up, 99th percentile (ms)", lambda one: one.pickup_ms(99), True),
    ("worker CPU (µs a job)", lambda one: one.worker_us(), True),
    ("server CPU (µs a job)", lambda one: one.server_us(), True),
    ("memory (MiB)", lambda one: one.peak_mib(), True),
)
"""What is compared, and whether less is better."""


def print_table(comparison: Comparison) -> None:
    """Print the figures."""
    rows = [SHORT_HEADS, *(cells for kind in KINDS for cells in _rows(comparison, kind))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(SHORT_HEADS))]
    print()
    for first, *others in rows:
        print("  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]))
    for line in _misses(comparison):
        print(line)


def print_growth(comparison: Comparison) -> None:
    """Print what growth did to the drain."""
    for line in _growth(comparison):
        print(line)


def write_page(comparison: Comparison) -> None:
    """Write the page of everything but growth."""
    PAGE.write_text("\n".join(_page(comparison)) + "\n", encoding="utf-8")


def write_growth(comparison: Comparison) -> None:
    """Write the page of growth."""
    lines = ["# Benchmarks of growth\n", GROWTH, _measured(comparison), *_growth(comparison)]
    GROWTH_PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _measured(comparison: Comparison) -> str:
    rounds = f"medians over {comparison.rounds} rounds" if comparison.rounds > 1 else "one round"
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, {cpu_count()} cores, {rounds}. {'; '.join(comparison.storages.values())}.\n"
    )


def _page(comparison: Comparison) -> Iterator[str]:
    yield "# Benchmarks\n"
    yield INTRODUCTION
    if comparison.is_reduced:
        yield REDUCED
    yield _measured(comparison)
    for kind, title in KINDS.items():
        if rows := list(_rows(comparison, kind)):
            yield f"## On {title}\n"
            yield from _markdown(HEADS, rows)
            yield NOTES[kind]
    yield from _remarks(comparison)
    yield "## How it is measured\n"
    yield METHOD.format(rounds=comparison.rounds, s="" if comparison.rounds == 1 else "s")
    yield "## The peers\n"
    yield SET_UP
    rows = [
        (one.about.title, ", ".join(one.about.versions), one.about.tuning, one.about.history, one.about.crash)
        for one in comparison.figures.values()
    ]
    yield from _markdown(("", "versions", "set up", "history", "after a crash"), rows)
    yield from _misses(comparison)


def _misses(comparison: Comparison) -> Iterator[str]:
    for name, reason in comparison.lost.items():
        yield f"- {name} was not measured: {reason}"
    for figures in comparison.figures.values():
        for what, reason in figures.failures.items():
            yield f"- {figures.about.title}, {what}: not measured: {reason}"
        if figures.repeats():
            yield f"- {figures.about.title} ran jobs again that had run already: {figures.repeats()} in all drains."


def _rows(comparison: Comparison, kind: str) -> Iterator[tuple[str, ...]]:
    some = [one for name, one in comparison.figures.items() if PEERS[name].storage == kind]
    limit = next((one.drain_rate(1) for one in some if one.about.is_limit), None)
    for one in sorted(some, key=lambda one: -(one.drain_rate(1) or 0)):
        drained = one.drain_rate(1)
        yield (
            one.about.title,
            _number(drained),
            _number(one.drain_rate(2)),
            "" if not limit or not drained else f"{drained / limit:.2f}",
            _number(one.bulk_rate()) + ("" if one.about.has_bulk or one.bulk_rate() is None else " ¹"),
            _number(one.single_rate()),
            _pickup(one),
            _number(one.worker_us()),
            _number(one.server_us()),
            _number(one.peak_mib()),
        )


def _pickup(one: Figures) -> str:
    if not one.pickup:
        return ""
    text = " / ".join(f"{one.pickup_ms(percent) or 0:.1f}" for percent in (50, 90, 99))
    return text if len(one.pickup) >= 200 else f"{text} ({len(one.pickup)} jobs)"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _growth(comparison: Comparison) -> Iterator[str]:
    for axis in AXES:
        sizes = [size for title, size in comparison.grown if title == axis.title]
        names = dict.fromkeys(name for size in sizes for name in comparison.grown[axis.title, size])
        if not sizes:
            continue
        rows = []
        for name in names:
            rates = [comparison.grown_rate(axis.title, size, name) for size in sizes]
            rows.append((comparison.figures[name].about.title, *(_number(rate) for rate in rates)))
        yield from _markdown((axis.title, *(f"{size:,}" for size in sizes)), rows)
    for (title, size, name), reason in comparison.grown_failures.items():
        yield f"- {comparison.figures[name].about.title}, {title} {size:,}: {reason}"


def _remarks(comparison: Comparison) -> Iterator[str]:
    """Name every measure in which another queue on the same kind of storage is ahead of Windlass."""
    yield "¹ The peer has no bulk call; its tuning below says what was done in its place.\n"
    yield "### Where others are ahead\n"
    found = [line for name in PEERS for line in _ahead(comparison, name)]
    yield from found or ["In no measure of this run was another queue ahead of Windlass on the same kind of storage."]
    yield ""


def _ahead(comparison: Comparison, name: str) -> Iterator[str]:
    ours = comparison.figures.get(name)
    if ours is None or PEERS[name].program != "windlass" or ours.about.is_inside:
        return
    peers = [
        one
        for other, one in comparison.figures.items()
        if PEERS[other].storage == PEERS[name].storage and PEERS[other].program != "windlass" and not one.about.is_limit
    ]
    for what, value, is_less in COMPARED:
        mine = value(ours)
        if mine is None:
            continue
        found = [(theirs, one) for one in peers if (theirs := value(one)) is not None]
        ahead = sorted(((theirs, one) for theirs, one in found if (theirs < mine if is_less else theirs > mine)), key=_first)
        if ahead:
            listed = ", ".join(f"{one.about.title} {_shown(theirs)}" for theirs, one in (ahead if is_less else reversed(ahead)))
            yield f"- {ours.about.title}, {what}: {_shown(mine)}; ahead: {listed}."


def _first(found: tuple[float, Figures]) -> float:
    return found[0]


def _shown(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
