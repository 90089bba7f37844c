"""What monitors read, in the text format of Prometheus or as OpenMetrics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from windlass import __version__
from windlass.core.breaker import BreakerState
from windlass.core.histogram import BOUNDS, BUCKETS, Histogram
from windlass.core.insights import RunTimes, Scrape
from windlass.core.job import JobState
from windlass.store import Store

MOST_TASKS = 200
MOST_LANES = 50
MOST_BREAKERS = 100
_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
# Three bounds a decade, from 1 ms to about 28 hours: 25 series for each task in place of 82.
_EDGES = tuple((place, str(bound / 1000)) for place, bound in enumerate(BOUNDS) if place % 10 in {0, 4, 7})


class Exposition(NamedTuple):
    """An answer to a monitor."""

    content_type: str
    body: bytes


async def expose(store: Store, accept: str = "") -> Exposition:
    """Read the metrics and write them in the form that an Accept header asks for."""
    asked_at = time.monotonic()
    await store.clock()
    round_trip = timedelta(seconds=time.monotonic() - asked_at)
    registry = CollectorRegistry()
    registry.register(_Collector(await store.insights.scrape(), round_trip, store.database.dialect))
    encode, content_type = choose_encoder(accept)
    return Exposition(content_type, encode(registry))


class _Names:
    """The values that a label may have: the first `most` of them; how many samples were left out is counted."""

    def __init__(self, declared: Iterable[str], others: Iterable[str], most: int) -> None:
        first = sorted(set(declared))
        rest = sorted(set(others) - set(first))
        self._kept = frozenset([*first, *rest][:most])

    def __contains__(self, name: str) -> bool:
        return name in self._kept


class _Collector:
    """Makes metrics of one look; registered for one answer only."""

    def __init__(self, scrape: Scrape, round_trip: timedelta, database: str) -> None:
        present = scrape.present
        self._scrape = scrape
        self._present = present
        self._round_trip = round_trip
        self._database = database
        named = [*(one.task for one in present.counts), *(one.task for one in present.totals)]
        self._tasks = _Names(present.declared, named, MOST_TASKS)
        self._lanes = _Names(present.declared.values(), (one.lane for one in present.counts), MOST_LANES)
        self._dropped = 0

    def describe(self) -> Sequence[Metric]:
        """Name nothing beforehand: the registry would collect in order to find out."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Make every metric; the one for what was left out comes last."""
        self._dropped = 0
        yield self._jobs()
        yield self._oldest()
        yield self._runs()
        yield self._histogram("windlass_wait_seconds", "How long runs waited for a slot after they were due.", "wait")
        yield self._histogram("windlass_run_seconds", "How long runs took.", "run")
        yield _counter("windlass_leases_lost", "Runs that ended because their lease was lost.", self._present.lost_leases)
        yield from self._breakers()
        yield _gauge(
            "windlass_schedule_lateness_seconds",
            "How overdue the most overdue schedule or delayed job is; 0 where none is.",
            self._present.lateness.total_seconds(),
        )
        yield self._pools()
        yield _gauge("windlass_workers", "Workers that are online.", self._present.workers)
        yield _gauge("windlass_alerts", "Alerts that are raised and not cleared.", self._present.alerts)
        yield from self._store()
        yield _gauge("windlass_series_dropped", "Samples left out because a label had too many values.", self._dropped)

    def _jobs(self) -> Metric:
        family = GaugeMetricFamily("windlass_jobs", "Jobs by task, lane and state.", labels=["task", "lane", "state"])
        numbers: dict[tuple[str, str], dict[JobState, int]] = {
            (task, lane): dict.fromkeys(JobState, 0) for task, lane in self._present.declared.items()
        }
        for one in self._present.counts:
            numbers.setdefault((one.task, one.lane), dict.fromkeys(JobState, 0))[one.state] += one.jobs
        for (task, lane), states in sorted(numbers.items()):
            if task not in self._tasks or lane not in self._lanes:
                self._dropped += len(states)
                continue
            for state, jobs in states.items():
                family.add_metric([task, lane, state.value], jobs)
        return family

    def _oldest(self) -> Metric:
        family = GaugeMetricFamily(
            "windlass_oldest_pending_seconds",
            "How long the pending job that has been due the longest has waited; 0 where none waits.",
            labels=["lane"],
        )
        lanes = {one.lane for one in self._present.counts} | set(self._present.declared.values())
        for lane in sorted(lanes):
            if lane not in self._lanes:
                self._dropped += 1
                continue
            since = min((at for where, at in self._present.oldest.items() if where.lane == lane), default=None)
            family.add_metric([lane], self._present.age(since).total_seconds())
        return family

    def _runs(self) -> Metric:
        family = CounterMetricFamily("windlass_runs", "Runs that ended since the beginning.", labels=["task", "status", "reason"])
        for one in self._present.totals:
            if one.task not in self._tasks:
                self._dropped += 1
                continue
            family.add_metric([one.task, one.status.value, "" if one.reason is None else one.reason.value], one.runs)
        return family

    def _histogram(self, name: str, text: str, kind: str) -> Metric:
        family = HistogramMetricFamily(name, f"{text} Released and snoozed runs are left out.", labels=["task"])
        for one in self._scrape.times:
            if one.task not in self._tasks:
                self._dropped += len(_EDGES) + 3
                continue
            histogram, total_ms = _measured(one, kind)
            family.add_metric([one.task], _buckets(histogram), total_ms / 1000)
        return family

    def _breakers(self) -> Iterator[Metric]:
        state = GaugeMetricFamily("windlass_breaker_state", "0 is closed, 1 half open, 2 open.", labels=["breaker"])
        trips = GaugeMetricFamily(
            "windlass_breaker_trips", "How often a breaker opened within the last 24 hours.", labels=["breaker"]
        )
        shown = self._present.breakers[:MOST_BREAKERS]
        self._dropped += 2 * (len(self._present.breakers) - len(shown))
        for one in shown:
            state.add_metric([one.name], _STATES[one.state])
            trips.add_metric([one.name], self._present.trips.get(one.name, 0))
        yield state
        yield trips

    def _pools(self) -> Metric:
        family = GaugeMetricFamily(
            "windlass_pool_slots",
            "Slots of workers that are online, by pool; `*` serves every lane.",
            labels=["lane", "state"],
        )
        shown = self._present.pools[:MOST_LANES]
        self._dropped += 2 * (len(self._present.pools) - len(shown))
        for one in shown:
            family.add_metric([one.lane, "busy"], one.busy)
            family.add_metric([one.lane, "idle"], max(0, one.slots - one.busy))
        return family

    def _store(self) -> Iterator[Metric]:
        yield _gauge(
            "windlass_store_round_trip_seconds",
            "How long the database took to answer the shortest question.",
            self._round_trip.total_seconds(),
        )
        yield _gauge("windlass_store_size_bytes", "The size of the tables, or of the SQLite file.", self._scrape.size_bytes)
        yield _gauge("windlass_store_schema_version", "The last migration that the database has.", self._scrape.schema_version)
        info = GaugeMetricFamily("windlass_build_info", "Always 1.", labels=["version", "database"])
        info.add_metric([__version__, self._database], 1)
        yield info


def _measured(one: RunTimes, kind: str) -> tuple[Histogram, int]:
    return (one.waits, one.wait_ms) if kind == "wait" else (one.durations, one.duration_ms)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Count what is below each bound, in seconds."""
    below = list(accumulate(histogram.counts.get(number, 0) for number in range(BUCKETS)))
    return [*((edge, float(below[place])) for place, edge in _EDGES), ("+Inf", float(below[-1]))]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
