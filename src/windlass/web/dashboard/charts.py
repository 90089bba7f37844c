"""Charts as SVG: what is drawn where; the templates write it down and `charts.js` reads the numbers out.

Across, a chart is as wide as its place and counts in units of ten for each point. Down, it has a fixed height, so that nothing
moves while a page loads or is drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.histogram import Histogram, edges
from windlass.core.record import record

NONE = "—"
"""In place of a number that is not known."""
UNIT = 10
"""How wide one point is."""
HEIGHT = 96
SPARK_HEIGHT = 26
_GAP = 1
_LEAST_BAR = 1.5
_LABELS = 6
_LINE_HEIGHT = 13
_EDGE = 95
"""From how many percent on a label would stand out on the right."""
_DAY = timedelta(days=1)
_MS_PER_UNIT = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_TIMES_MS = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 60_000.0, 600_000.0, 3_600_000.0, 36_000_000.0, 864_000_000.0)
"""Where an axis of times may have its lines."""


class Scale(NamedTuple):
    """From which value to which an axis reaches; times differ by so much that each line of theirs is ten times the one before."""

    low: float
    top: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return how far up a value is, from 0 to 1."""
        inside = min(max(value, self.low), self.top)
        if self.is_log:
            return math.log(inside / self.low) / math.log(self.top / self.low)
        return (inside - self.low) / (self.top - self.low)


class Mark(NamedTuple):
    """A label at some place: across in percent, down in pixels."""

    at: float
    text: str
    anchor: str = "middle"


class Layer(NamedTuple):
    """A path with the look of its kind, as the legend shows it."""

    kind: str
    label: str
    path: str
    is_filled: bool


@record(kw_only=True)
class Chart:
    """A drawing with its axes; row by row, `numbers` is the table that has its points, and `columns` are those it shows."""

    id: str
    title: str
    summary: str
    layers: Sequence[Layer]
    points: int
    numbers: str
    columns: Sequence[int]
    across: Sequence[Mark] = ()
    up: Sequence[Mark] = ()
    height: int = HEIGHT
    is_empty: bool = False

    @property
    def width(self) -> int:
        """How wide it is in its own units."""
        return self.points * UNIT


class Values(NamedTuple):
    """One value for each point; None where there is none."""

    kind: str
    label: str
    values: Sequence[float | None]


class Numbers(NamedTuple):
    """The numbers behind charts, as a table."""

    id: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


class Gauge(NamedTuple):
    """How much of something is used, from 0 to 100."""

    percent: float
    text: str
    level: str
    """`low`, `high` or `full`."""


def count_text(value: float | None) -> str:
    """Write a number of things; nothing is a dash."""
    return NONE if value is None else f"{value:,.0f}"


def rate_text(value: float | None) -> str:
    """Write how many a second, to two digits below one and three above."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if value >= 100 else f"{value:.{2 if value < 1 else 3}g}"  # noqa: PLR2004 - whole numbers from here


def ms_text(value: float | None) -> str:
    """Write a time to three digits."""
    if value is None:
        return NONE
    for length, unit in _MS_PER_UNIT:
        if value >= length:
            return f"{_digits(value / length)} {unit}"
    return f"{_digits(value)} ms"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def percent_text(share: float | None) -> str:
    """Write a share to three digits."""
    return NONE if share is None else f"{_digits(share * 100)} %"


def round_count(most: float) -> float:
    """Return a round number that is not less, for the top of an axis."""
    if most <= 0:
        return 1
    size = 10.0 ** math.floor(math.log10(most))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= most)


def counts_scale(values: Iterable[float | None]) -> Scale:
    """Return an axis for numbers of things."""
    return Scale(0, round_count(max((value for value in values if value is not None), default=0)))


def times_scale(values: Iterable[float | None]) -> Scale:
    """Return an axis for times in milliseconds."""
    known = [value for value in values if value is not None] or [1.0, 1_000.0]
    low = max((one for one in _TIMES_MS[:-1] if one <= min(known)), default=_TIMES_MS[0])
    top = next((one for one in _TIMES_MS if one >= max(known) and one > low), _TIMES_MS[-1])
    return Scale(low, top, is_log=True)


def stacked(series: Sequence[Values], scale: Scale, height: int = HEIGHT) -> list[Layer]:
    """Draw bars on top of each other, the first at the bottom; what is there is seen, however little it is."""
    floors = [0.0] * max((len(one.values) for one in series), default=0)
    layers = []
    for one in series:
        parts = []
        for place, value in enumerate(one.values):
            if not value:
                continue
            tall = max(_LEAST_BAR, scale.share(value) * height)
            parts.append(f"M{place * UNIT + _GAP} {_n(height - floors[place])}v{_n(-tall)}h{UNIT - 2 * _GAP}v{_n(tall)}z")
            floors[place] += tall
        layers.append(Layer(one.kind, one.label, "".join(parts), is_filled=True))
    return layers


def lines(series: Sequence[Values], scale: Scale, height: int = HEIGHT) -> list[Layer]:
    """Draw a line for each; where a value is missing there is a gap."""
    return [Layer(one.kind, one.label, _line(one.values, scale, height), is_filled=False) for one in series]


def area(one: Values, scale: Scale, height: int = HEIGHT) -> list[Layer]:
    """Draw a line and fill what is below it."""
    filled = "".join(
        f"M{_n(_middle(part[0][0]))} {height}"
        + "".join(f"L{_n(_middle(place))} {_n(_down(value, scale, height))}" for place, value in part)
        + f"L{_n(_middle(part[-1][0]))} {height}z"
        for part in _stretches(one.values)
    )
    return [Layer(f"{one.kind} below", one.label, filled, is_filled=True), *lines([one], scale, height)]


def _line(values: Sequence[float | None], scale: Scale, height: int) -> str:
    drawn = []
    for part in _stretches(values):
        path = "L".join(f"{_n(_middle(place))} {_n(_down(value, scale, height))}" for place, value in part)
        # A point between two gaps would be no line at all.
        drawn.append(f"M{path}" if len(part) > 1 else f"M{path}m-3 0h6")
    return "".join(drawn)


def _stretches(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    parts: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            parts.append([])
        else:
            parts[-1].append((place, value))
    return [part for part in parts if part]


def _middle(place: int) -> float:
    return (place + 0.5) * UNIT


def _down(value: float, scale: Scale, height: int) -> float:
    return height - scale.share(value) * (height - 1)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def axis(scale: Scale, write: Callable[[float], str], height: int = HEIGHT) -> list[Mark]:
    """Label the lines of a chart."""
    if scale.is_log:
        spots = [one for one in reversed(_TIMES_MS) if scale.low <= one <= scale.top]
        return _apart([Mark(round((1 - scale.share(one)) * height, 1), write(one)) for one in spots], height)
    # Things are counted in whole numbers.
    half = [Mark(height / 2, write(scale.top / 2))] if scale.top % 2 == 0 else []
    return [Mark(0, write(scale.top)), *half]


def _apart(marks: Sequence[Mark], height: int) -> list[Mark]:
    """Leave out labels that would lie on each other; that of the floor stands above it."""
    kept: list[Mark] = []
    for mark in marks:
        room = _LINE_HEIGHT if mark.at < height else 2 * _LINE_HEIGHT
        if not kept or mark.at - kept[-1].at >= room:
            kept.append(mark)
    return kept


def clock(moments: Sequence[datetime], step: timedelta) -> list[Mark]:
    """Label some moments of an axis, each below the middle of its point; times are UTC."""
    if not moments:
        return []
    length = len(moments) * step
    every = max(1, math.ceil(len(moments) / _LABELS))
    form = "%H:%M" if length <= _DAY else "%d %b %H:%M" if step < _DAY else "%d %b"
    places = range(every // 2, len(moments), every)
    return [_labelled((place + 0.5) / len(moments) * 100, f"{moments[place]:{form}}") for place in places]


def _labelled(at: float, text: str) -> Mark:
    return Mark(round(at, 2), text, "end" if at > _EDGE else "start" if at < 100 - _EDGE else "middle")


def spark(label: str, values: Sequence[float | None], numbers: Numbers, *, columns: Sequence[int], kind: str) -> Chart:
    """Draw a small area for a tile."""
    scale = Scale(0, max((value for value in values if value is not None), default=0) or 1)
    return Chart(
        id="",
        title=label,
        summary=label,
        layers=area(Values(kind, label, values), scale, SPARK_HEIGHT),
        points=len(values),
        numbers=numbers.id,
        columns=columns,
        height=SPARK_HEIGHT,
        is_empty=all(value is None for value in values),
    )


def histogram(name: str, title: str, found: Histogram) -> tuple[Chart, Numbers]:
    """Draw how many times fell into each bucket, from the first that has any to the last."""
    buckets = range(min(found.counts), max(found.counts) + 1) if found.counts else range(0)
    values = [found.counts.get(bucket, 0) for bucket in buckets]
    scale = counts_scale(values)
    total = found.total or 1
    spans = [f"{ms_text(low)} to {ms_text(high)}" for low, high in map(edges, buckets)]
    cells = [(span, (count_text(runs), percent_text(runs / total))) for span, runs in zip(spans, values, strict=True)]
    numbers = Numbers(f"{name}-numbers", title, ("Time", "Runs", "Share"), cells)
    chart = Chart(
        id=name,
        title=title,
        summary=_spread(found),
        layers=stacked([Values("plain", "runs", values)], scale),
        points=max(1, len(values)),
        numbers=numbers.id,
        columns=(0, 1),
        across=_bounds(buckets),
        up=axis(scale, count_text),
        is_empty=not values,
    )
    return chart, numbers


def _spread(found: Histogram) -> str:
    if not found.total:
        return "No runs ended."
    half, most = found.percentile(50), found.percentile(95)
    return f"{found.total:,} runs: half up to {ms_text(half)}, 95 % up to {ms_text(most)}."


def _bounds(buckets: range) -> list[Mark]:
    every = max(1, math.ceil(len(buckets) / _LABELS))
    places = range(0, len(buckets), every)
    return [Mark(round(place / len(buckets) * 100, 2), ms_text(edges(buckets[place])[0]), "start") for place in places]


_HIGH = 75
_FULL = 100


def gauge(used: int, of: int) -> Gauge:
    """Show how many of some places are used."""
    percent = min(100.0, round(used / of * 100, 1)) if of else 0.0
    return Gauge(percent, f"{used:,} of {of:,}", "full" if of and percent >= _FULL else "high" if percent >= _HIGH else "low")


_REACH = _DAY
_SOON = timedelta(seconds=5)
_SPOTS = (("now", timedelta()), ("1 min", timedelta(minutes=1)), ("10 min", timedelta(minutes=10)), ("1 h", timedelta(hours=1)))


def along(moment: datetime, now: datetime) -> float:
    """Return where a moment is on a time line of a day, in percent: what is near has more room than what is far away."""
    ahead = min(max(timedelta(), moment - now), _REACH)
    return round(math.log1p(ahead / _SOON) / math.log1p(_REACH / _SOON) * 100, 2)


def spots(now: datetime) -> list[Mark]:
    """Label the time line."""
    inner = [Mark(along(now + ahead, now), text, "start" if not ahead else "middle") for text, ahead in _SPOTS]
    return [*inner, Mark(100, "1 d", "end")]
