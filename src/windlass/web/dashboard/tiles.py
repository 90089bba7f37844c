"""The tiles of the first page: six numbers, each with its last hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from windlass.core.insights import Flow
from windlass.core.job import JobState
from windlass.core.sample import Sample
from windlass.core.series import Point
from windlass.web.dashboard.charts import NONE, Chart, Numbers, count_text, ms_text, rate_text, spark
from windlass.web.dashboard.run_charts import COLUMN, OWN_COLUMNS, Column
from windlass.web.snapshot import Snapshot

_SECOND = timedelta(seconds=1)


class Tile(NamedTuple):
    """A number with its last hour; `counted` is the state that it counts."""

    name: str
    label: str
    value: str
    detail: str
    path: str
    colour: str
    spark: Chart
    counted: str = ""
    is_bad: bool = False


_SAMPLED: tuple[tuple[str, Callable[[Sample], str]], ...] = (
    ("Waiting", lambda one: count_text(one.waiting)),
    ("Oldest waits", lambda one: ms_text(one.oldest / timedelta(milliseconds=1))),
    ("Running", lambda one: count_text(one.running)),
    ("Retrying", lambda one: count_text(one.retrying)),
    ("In a second", lambda one: rate_text(one.in_per_second)),
)
_WAITING, _OLDEST, _RUNNING, _RETRYING, _IN = (OWN_COLUMNS + place for place in range(len(_SAMPLED)))


def sampled_columns(samples: Sequence[Sample | None]) -> list[Column]:
    """Write how deep the queue was in each minute."""
    return [Column(label, [NONE if one is None else write(one) for one in samples]) for label, write in _SAMPLED]


def tiles(seen: Snapshot, points: Sequence[Point], numbers: Numbers) -> list[Tile]:
    """Lay the tiles out."""
    total, samples = seen.summary.total, seen.samples
    slots = sum(pool.slots for pool in seen.summary.present.pools)
    failed = sum(one.failed for one in points)
    drain = "growing" if total.drain is None else f"empty in {_seconds(total.drain)}" if total.drain else "empty"

    def small(kind: str, label: str, values: Sequence[float | None], *columns: int) -> Chart:
        return spark(label, values, numbers, columns=columns, kind=kind)

    deaths = f"{seen.deaths.hour:,}{'' if seen.deaths.is_exact else '+'}"
    return [
        Tile(
            "waiting",
            "Waiting",
            count_text(seen.count(JobState.PENDING)),
            _oldest(total),
            "/jobs?state=pending",
            "pending",
            small("pending", "waiting jobs", _of(samples, lambda one: one.waiting), _WAITING, _OLDEST),
            counted="pending",
        ),
        Tile(
            "running",
            "Running",
            count_text(seen.count(JobState.RUNNING)),
            f"of {slots:,} slots",
            "/jobs?state=running",
            "running",
            small("running", "running jobs", _of(samples, lambda one: one.running), _RUNNING),
            counted="running",
        ),
        Tile(
            "retrying",
            "Retrying",
            count_text(seen.retrying),
            "try again later",
            "/jobs?state=scheduled&sort=run_at&order=asc",
            "retry",
            small("retry", "jobs that wait for another try", _of(samples, lambda one: one.retrying), _RETRYING),
        ),
        Tile(
            "dead",
            "Failed, last hour",
            deaths,
            f"{failed:,} run{'' if failed == 1 else 's'}",
            "/dead",
            "failed",
            small("failed", "failed runs", [one.failed for one in points], COLUMN["Failed"], COLUMN["Error rate"]),
            is_bad=bool(seen.deaths.hour),
        ),
        Tile(
            "flow",
            "In / out a second",
            f"{_rate(total.in_per_second)} / {_rate(total.out_per_second)}",
            drain,
            "/trends",
            "completed",
            small("completed", "runs that ended", [one.out_per_second for one in points], COLUMN["Out a second"], _IN),
        ),
        Tile(
            "wait",
            "Wait, p95",
            ms_text(total.wait.p95),
            f"half {ms_text(total.wait.p50)}" if total.wait.p50 is not None else "no runs",
            "/trends",
            "scheduled",
            small("pending", "wait p95", [one.wait.p95 for one in points], COLUMN["Wait p50"], COLUMN["Wait p95"]),
        ),
    ]


def _of(samples: Sequence[Sample | None], value: Callable[[Sample], float]) -> list[float | None]:
    return [None if one is None else value(one) for one in samples]


def _rate(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"  # noqa: PLR2004 - two digits


def _oldest(total: Flow) -> str:
    if not total.jobs[JobState.PENDING]:
        return "none waits"
    return f"oldest {_seconds(total.oldest_pending)}" if total.oldest_pending >= _SECOND else "oldest < 1 s"


def _seconds(length: timedelta) -> str:
    return ms_text(length / timedelta(milliseconds=1))
