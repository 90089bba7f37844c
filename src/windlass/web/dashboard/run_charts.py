"""The charts of runs over time that the first page, the trends and the page of a task have, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from windlass.core.insights import Times
from windlass.core.record import record
from windlass.core.runs import Minute
from windlass.core.series import Point
from windlass.web.dashboard import charts
from windlass.web.dashboard.charts import NONE, Chart, Numbers, Values, count_text, ms_text, percent_text, rate_text

NUMBERS = "numbers"
_DAY = timedelta(days=1)


class Column(NamedTuple):
    """A further column of the numbers."""

    label: str
    cells: Sequence[str]


@record(kw_only=True)
class RunCharts:
    """Throughput, failures and percentiles, and the table that has their numbers."""

    throughput: Chart
    failures: Chart
    wait: Chart
    run: Chart
    numbers: Numbers


_COMPLETED, _FAILED, _CANCELLED, _OUT, _ERRORS = range(5)
_WAIT = (5, 6, 7)
_RUN = (8, 9, 10)
OWN_COLUMNS = 11
"""How many columns come before those that a page adds."""
_LABELS = (
    *("Completed", "Failed", "Cancelled", "Out a second", "Error rate"),
    *("Wait p50", "Wait p95", "Wait p99", "Run p50", "Run p95", "Run p99"),
)
COLUMN = {label: place for place, label in enumerate(_LABELS)}
_BEFORE = ("Runs before", "Failed before", "Wait p95 before", "Run p95 before")


def run_charts(
    points: Sequence[Point], step: timedelta, whole: Minute, *, before: Sequence[Point] = (), more: Sequence[Column] = ()
) -> RunCharts:
    """Draw runs over time; `before` are the points of another range, one beside each."""
    drawing = _Drawing(points, step, whole, before)
    return RunCharts(
        throughput=drawing.throughput(),
        failures=drawing.failures(),
        wait=drawing.times("wait", "Wait before a run", columns=_WAIT, verb="waited", of=lambda one: one.wait),
        run=drawing.times("run", "Run time", columns=_RUN, verb="took", of=lambda one: one.run),
        numbers=_numbers(points, step, before, more),
    )


def length_text(length: timedelta) -> str:
    """Write how long a range is."""
    minutes = length // timedelta(minutes=1)
    for size, unit in ((24 * 60, "days"), (60, "hours")):
        if minutes >= 2 * size and minutes % size == 0:
            return f"{minutes // size} {unit}"
    return f"{minutes} minutes"


@record
class _Drawing:
    points: Sequence[Point]
    step: timedelta
    whole: Minute
    before: Sequence[Point]

    def throughput(self) -> Chart:
        ended = [one.completed + one.failed + one.cancelled for one in self.points]
        past = [one.completed + one.failed + one.cancelled for one in self.before]
        scale = charts.counts_scale((*ended, *past))
        kinds = ("completed", "failed", "cancelled")
        series = [Values(kind, kind, [getattr(one, kind) for one in self.points]) for kind in kinds]
        layers = charts.stacked(series, scale) + (charts.lines([Values("before", "before", past)], scale) if past else [])
        columns = (_COMPLETED, _FAILED, _CANCELLED, *self._also(0))
        return self._chart(
            "throughput", self._title("Runs"), self._summary(), layers, columns=columns, up=charts.axis(scale, count_text)
        )

    def failures(self) -> Chart:
        failed, past = [one.failed for one in self.points], [one.failed for one in self.before]
        scale = charts.counts_scale((*failed, *past))
        layers = charts.area(Values("failed", "failed", failed), scale)
        layers = [layers[0]._replace(label=""), layers[1]]
        layers += charts.lines([Values("before", "before", past)], scale) if past else []
        decided = self.whole.completed + self.whole.failed
        share = percent_text(self.whole.failed / decided if decided else 0.0)
        summary = f"{self.whole.failed:,} runs failed, {share} of those that completed or failed."
        columns = (_FAILED, _ERRORS, *self._also(1))
        return self._chart(
            "failures", self._title("Failed runs"), summary, layers, columns=columns, up=charts.axis(scale, count_text)
        )

    def times(self, name: str, title: str, *, columns: Sequence[int], verb: str, of: Callable[[Point], Times]) -> Chart:
        found = [of(one) for one in self.points]
        past = [of(one).p95 for one in self.before]
        series = [Values(kind, kind, [getattr(one, kind) for one in found]) for kind in ("p50", "p95", "p99")]
        if past:
            series.append(Values("before", "p95 before", past))
        scale = charts.times_scale(value for one in series for value in one.values)
        layers = charts.lines(series, scale)
        times = self.whole.waits if name == "wait" else self.whole.runs
        summary = f"Half {verb} up to {ms_text(times.percentile(50))}, 95 % up to {ms_text(times.percentile(95))}."
        if not times.total:
            summary = "No runs ended."
        shown = (*columns, *self._also(2 if name == "wait" else 3))
        return self._chart(name, title, summary, layers, columns=shown, up=charts.axis(scale, ms_text))

    def _also(self, place: int) -> tuple[int, ...]:
        return (OWN_COLUMNS + place,) if self.before else ()

    def _title(self, what: str) -> str:
        return f"{what} a minute" if self.step == timedelta(minutes=1) else f"{what} in {length_text(self.step)}"

    def _summary(self) -> str:
        length = length_text(len(self.points) * self.step)
        if not self.whole.finished:
            return f"No runs in {length}."
        return f"{self.whole.finished:,} runs in {length}, {self.whole.failed:,} failed."

    def _chart(
        self,
        name: str,
        title: str,
        summary: str,
        layers: Sequence[charts.Layer],
        *,
        columns: Sequence[int],
        up: Sequence[charts.Mark],
    ) -> Chart:
        return Chart(
            id=f"chart-{name}",
            title=title,
            summary=summary,
            layers=layers,
            points=len(self.points),
            numbers=NUMBERS,
            columns=columns,
            across=charts.clock([one.at for one in self.points], self.step),
            up=up,
            is_empty=not self.whole.finished and not any(layer.path for layer in layers),
        )


def _numbers(points: Sequence[Point], step: timedelta, before: Sequence[Point], more: Sequence[Column]) -> Numbers:
    form = "%H:%M UTC" if len(points) * step <= _DAY else "%d %b %H:%M UTC"
    labels = (*_LABELS, *(_BEFORE if before else ()), *(one.label for one in more))
    rows = []
    for place, one in enumerate(points):
        cells = [*_cells(one), *(_before_cells(before[place]) if before else ()), *(column.cells[place] for column in more)]
        rows.append((f"{one.at:{form}}", cells))
    return Numbers(NUMBERS, f"Runs in steps of {length_text(step)}", ("Time", *labels), rows)


def _cells(one: Point) -> Iterable[str]:
    yield from map(count_text, (one.completed, one.failed, one.cancelled))
    yield rate_text(one.out_per_second)
    yield percent_text(one.error_rate) if one.completed + one.failed else NONE
    yield from map(ms_text, (*one.wait[:3], *one.run[:3]))


def _before_cells(one: Point) -> Iterable[str]:
    yield count_text(one.completed + one.failed + one.cancelled)
    yield count_text(one.failed)
    yield from map(ms_text, (one.wait.p95, one.run.p95))
