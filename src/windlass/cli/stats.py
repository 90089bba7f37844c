"""`windlass stats`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from windlass.cli import options
from windlass.cli.output import plain, say, say_json, say_table
from windlass.cli.session import operating
from windlass.core.durations import in_words
from windlass.core.insights import Flow, Summary
from windlass.core.job import JobState

FLOW = ("waiting", "running", "failed", "oldest_s", "in_per_s", "out_per_s", "wait_p95_ms", "run_p50_ms", "run_p95_ms", "errors")
"""The columns of a lane or a task, after its name."""


class Share(float):
    """A share that is shown as a percentage."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{float(self):.1%}"


@click.command()
@options.listing
@options.database
def stats(*, as_json: bool, database: str | None) -> None:
    """Show the queue's statistics: what waits, runs and fails, rates and times of the last minutes, by lane and by task.

    With --watch it is shown again and again; `windlass top` is a live view with keys.
    """
    with operating(database) as operator:
        found = operator.insights.summary_sync(is_whole=as_json)
    if as_json:
        say_json(plain(found))
        return
    say(headline(found))
    for name, flows in (("lane", found.lanes), ("task", found.tasks)):
        click.echo()
        say_table(flow_rows(name, flows), (name, *FLOW))


def headline(found: Summary) -> str:
    """Sum the queue up in a sentence."""
    total = found.total
    slots, busy = sum(pool.slots for pool in found.present.pools), sum(pool.busy for pool in found.present.pools)
    drain = "" if not total.drain else f", drained in about {in_words(total.drain)}"
    return (
        f"{_waiting(total):,} waiting{drain}; {busy:,} of {slots:,} slots busy on {found.present.workers:,} workers; "
        f"{total.in_per_second:.1f} in/s, {total.out_per_second:.1f} out/s, {total.error_rate:.1%} of runs failed"
    )


def flow_rows(name: str, flows: Mapping[str, Flow]) -> list[dict[str, Any]]:
    """Make a row of each lane or task under the heading `name`, the busiest first."""
    busiest = sorted(flows.items(), key=lambda pair: (-_waiting(pair[1]) - pair[1].jobs[JobState.RUNNING], pair[0]))
    return [{name: each, **_row(flow)} for each, flow in busiest]


def _waiting(flow: Flow) -> int:
    return flow.jobs[JobState.PENDING]


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _row(flow: Flow) -> dict[str, Any]:
    return {
        "waiting": _waiting(flow),
        "running": flow.jobs[JobState.RUNNING],
        "failed": flow.jobs[JobState.FAILED],
        "oldest_s": round(flow.oldest_pending.total_seconds(), 1) or None,
        "in_per_s": round(flow.in_per_second, 1),
        "out_per_s": round(flow.out_per_second, 1),
        "wait_p95_ms": _whole(flow.wait.p95),
        "run_p50_ms": _whole(flow.run.p50),
        "run_p95_ms": _whole(flow.run.p95),
        "errors": Share(flow.error_rate),
    }
