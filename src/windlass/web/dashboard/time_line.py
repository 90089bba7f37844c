"""Waits and runs drawn along one axis of time, in thousandths of its length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.job import Execution, JobState
from windlass.core.related import Span, Trace
from windlass.web.dashboard.times import short

_WIDTH = 1000
_LEAST = 4
"""How wide a piece is at least, so that it is seen."""
_TICKS = 4
_MILLISECOND = timedelta(milliseconds=1)


class Piece(NamedTuple):
    """A wait or a run."""

    kind: str
    """`wait`, or how the run ended or that it goes on."""
    start: float
    width: float
    title: str


class Tick(NamedTuple):
    """A mark of the axis."""

    place: float
    label: str


class _Part(NamedTuple):
    kind: str
    begin: datetime
    end: datetime
    title: str


class TimeAxis(NamedTuple):
    """A span of time that is drawn."""

    begin: datetime
    length: timedelta

    @classmethod
    def of(cls, begin: datetime, end: datetime) -> TimeAxis:
        """Draw from one instant to another."""
        return cls(begin, max(end - begin, _MILLISECOND))

    def piece(self, kind: str, begin: datetime, end: datetime, title: str) -> Piece:
        """Place what lasted from one instant to another; it is wide enough to be seen."""
        start, stop = self._place(begin), self._place(end)
        width = max(stop - start, _LEAST)
        return Piece(kind, round(min(start, _WIDTH - width), 1), round(width, 1), title)

    def has(self, part: _Part) -> bool:
        """Whether something of a part is within the axis."""
        return part.end >= self.begin and part.begin <= self.begin + self.length

    def _place(self, at: datetime) -> float:
        return min(1.0, max(0.0, (at - self.begin) / self.length)) * _WIDTH

    @property
    def ticks(self) -> list[Tick]:
        """How much time has passed at some places of the axis."""
        return [Tick(place / _TICKS * _WIDTH, short(self.length * place / _TICKS)) for place in range(_TICKS + 1)]


class RunLine(NamedTuple):
    """A run of one job with its wait."""

    run: Execution
    pieces: Sequence[Piece]
    summary: str


class RunLines(NamedTuple):
    """The runs of one job along one axis, the oldest first."""

    axis: TimeAxis
    lines: Sequence[RunLine]


def run_lines(runs: Sequence[Execution], at: datetime) -> RunLines | None:
    """Draw the runs of a job; None where it has none."""
    if not runs:
        return None
    ordered = sorted(runs, key=lambda run: run.number)
    axis = TimeAxis.of(min(map(_due, ordered)), max(run.finished_at or at for run in ordered))
    return RunLines(axis, [_run_line(run, axis, at) for run in ordered])


def _due(run: Execution) -> datetime:
    return run.started_at - run.wait_ms * _MILLISECOND


def _run_line(run: Execution, axis: TimeAxis, at: datetime) -> RunLine:
    end = run.finished_at or at
    waited, took = f"waited {short(run.wait_ms * _MILLISECOND)}", f"ran {short(end - run.started_at)}"
    pieces = [axis.piece(run.status.value, run.started_at, end, took)]
    if run.wait_ms:
        pieces.insert(0, axis.piece("wait", _due(run), run.started_at, waited))
    return RunLine(run, pieces, f"{run.status.value}: {waited}, {took}")


class TracedLine(NamedTuple):
    """A job of a trace with its waits and runs."""

    span: Span
    pieces: Sequence[Piece]
    wait: str
    ran: str
    summary: str


class Waterfall(NamedTuple):
    """The jobs of a trace along one axis, each before its children."""

    axis: TimeAxis
    lines: Sequence[TracedLine]


def waterfall(trace: Trace) -> Waterfall | None:
    """Draw a trace; None where it has no jobs."""
    if not trace.spans:
        return None
    # A recurring job goes on long after what came of one of its runs.
    once = [span for span in trace.spans if span.job.cadence is None] or trace.spans
    axis = TimeAxis.of(min(map(_shown_from, once)), max(_shown_until(span, trace.at) for span in once))
    return Waterfall(axis, [_traced_line(span, axis, trace.at) for span in trace.spans])


def _shown_from(span: Span) -> datetime:
    """Return when a line begins: of a recurring job, which may be years old, only the newest runs are drawn."""
    if span.job.cadence is None or not span.runs:
        return span.job.created_at
    return span.runs[0].started_at - span.runs[0].wait_ms * _MILLISECOND


def _shown_until(span: Span, at: datetime) -> datetime:
    """Return when a line ends; a job that has run to its end ended with its run, not when that was written."""
    if span.runs and span.job.state in {JobState.COMPLETED, JobState.FAILED}:
        return span.runs[-1].finished_at
    return span.shown_until(at)


def _traced_line(span: Span, axis: TimeAxis, at: datetime) -> TracedLine:
    job = span.job
    has_run = bool(span.runs) or job.state is JobState.RUNNING
    wait = "" if span.wait_ms is None else short(span.wait_ms * _MILLISECOND)
    ran = short(span.run_ms(at) * _MILLISECOND) if has_run else ""
    summary = f"{job.state.value}, waited {wait or 'until now'}, " + (f"ran {ran}" if ran else "has not run")
    return TracedLine(span, [axis.piece(*part) for part in _parts(span, at) if axis.has(part)], wait, ran, summary)


def _parts(span: Span, at: datetime) -> Iterator[_Part]:
    """Yield the wait and the runs of a job: what comes later is drawn over it."""
    job = span.job
    begin, end = _shown_from(span), _shown_until(span, at)
    yield _Part("wait", begin, end, f"from {begin:%H:%M:%S} to {end:%H:%M:%S} UTC, {short(end - begin)}")
    for run in span.runs:
        title = f"run {run.number} {run.status.value}: {short(run.finished_at - run.started_at)}"
        yield _Part(run.status.value, run.started_at, run.finished_at, title)
    if job.state is JobState.RUNNING and job.started_at is not None:
        yield _Part("running", job.started_at, at, f"runs since {short(at - job.started_at)}")
