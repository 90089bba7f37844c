"""A trace drawn for a terminal: the tree of jobs on the left, their waits and runs along one axis of time on the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.job import JobState, RunStatus
from windlass.core.one_line import one_line
from windlass.core.related import Span, Trace

_LEAST_BAR = 10
_LEAST_LABEL = 12
_GAP = "  "
_STATE_WIDTH = max(map(len, JobState))
_SECOND_MS, _MINUTE_S, _HOUR_S, _DAY_S = 1000, 60, 3600, 86_400


class Glyphs(NamedTuple):
    """What a tree and its bars are drawn with."""

    branch: str
    last: str
    through: str
    wait: str
    run: str
    failed: str
    now: str
    line: str
    cut: str


DRAWN = Glyphs("├ ", "└ ", "│ ", "·", "█", "x", "▒", "─", "…")
ASCII = Glyphs("|- ", "`- ", "|  ", ".", "#", "x", ">", "-", "~")


class _Axis(NamedTuple):
    begin: datetime
    length: timedelta
    width: int

    def place(self, at: datetime) -> int:
        """Return the column of an instant."""
        share = (at - self.begin) / self.length if self.length else 0.0
        return min(self.width - 1, max(0, int(share * self.width)))


def draw(trace: Trace, width: int, glyphs: Glyphs) -> Iterator[str]:
    """Yield the lines of a waterfall, each at most so wide where that is possible at all."""
    labels = _labels(trace.spans, glyphs)
    facts = [_facts(span, trace.at) for span in trace.spans]
    heading = ("state".ljust(_STATE_WIDTH), "tries", "wait", "run")
    widths = [max(len(one[place]) for one in (heading, *facts)) for place in range(len(heading))]
    taken = sum(widths) + len(_GAP) * (len(heading) + 1)
    label = max(_LEAST_LABEL, min(max(map(len, labels)), width - taken - _LEAST_BAR))
    axis = _axis(trace, max(_LEAST_BAR, width - taken - label))
    scale = _scale(axis, glyphs)
    yield _GAP.join(("job".ljust(label), *_aligned(heading, widths), scale)).rstrip()
    for span, name, cells in zip(trace.spans, labels, facts, strict=True):
        shown = name if len(name) <= label else name[: label - 1] + glyphs.cut
        yield _GAP.join((shown.ljust(label), *_aligned(cells, widths), _bar(span, trace.at, axis, glyphs))).rstrip()
    yield f"{glyphs.wait} waits  {glyphs.run} runs  {glyphs.failed} a run that failed  {glyphs.now} runs now"


def _labels(spans: Sequence[Span], glyphs: Glyphs) -> list[str]:
    labels = []
    for place, span in enumerate(spans):
        below = [other.depth for other in spans[place + 1 :]]
        stems = "".join(glyphs.through if _goes_on(below, depth) else " " * len(glyphs.through) for depth in range(1, span.depth))
        knot = (glyphs.branch if _goes_on(below, span.depth) else glyphs.last) if span.depth else ""
        labels.append(f"{stems}{knot}{span.job.id} {one_line(span.job.task)}")
    return labels


def _goes_on(below: Sequence[int], depth: int) -> bool:
    """Whether a line at this depth leads to a later job."""
    return next((one for one in below if one <= depth), 0) == depth


def _facts(span: Span, at: datetime) -> tuple[str, str, str, str]:
    wait = "-" if span.wait_ms is None else short(span.wait_ms)
    has_run = bool(span.runs) or span.job.state is JobState.RUNNING
    return (span.job.state.value.ljust(_STATE_WIDTH), str(span.job.executions), wait, short(span.run_ms(at)) if has_run else "-")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    return (text.rjust(width) for text, width in zip(cells, widths, strict=True))


def _axis(trace: Trace, width: int) -> _Axis:
    begin = min(span.job.created_at for span in trace.spans)
    end = max(span.shown_until(trace.at) for span in trace.spans)
    return _Axis(begin, max(end - begin, timedelta()), width)


def _scale(axis: _Axis, glyphs: Glyphs) -> str:
    end = short(axis.length // timedelta(milliseconds=1))
    return f"0 {glyphs.line * max(0, axis.width - len(end) - 3)} {end}"


def _bar(span: Span, at: datetime, axis: _Axis, glyphs: Glyphs) -> str:
    cells = [" "] * axis.width
    _fill(cells, axis, (span.job.created_at, span.shown_until(at)), glyphs.wait)
    for run in span.runs:
        _fill(cells, axis, (run.started_at, run.finished_at), glyphs.failed if run.status is RunStatus.FAILED else glyphs.run)
    if span.job.state is JobState.RUNNING and span.job.started_at is not None:
        _fill(cells, axis, (span.job.started_at, at), glyphs.now)
    return "".join(cells)


def _fill(cells: list[str], axis: _Axis, part: tuple[datetime, datetime], mark: str) -> None:
    first, last = axis.place(part[0]), axis.place(part[1])
    cells[first : last + 1] = mark * (last + 1 - first)


def short(ms: int) -> str:
    """Write a length of time in as few letters as possible."""
    if ms < _SECOND_MS:
        return f"{ms}ms"
    seconds = ms / _SECOND_MS
    if seconds < _MINUTE_S:
        return f"{seconds:.1f}s"
    for unit, name, below, rest in ((_MINUTE_S, "m", _HOUR_S, "s"), (_HOUR_S, "h", _DAY_S, "m")):
        if seconds < below:
            whole, left = divmod(int(seconds), unit)
            return f"{whole}{name}{left // (1 if rest == 's' else _MINUTE_S):02}{rest}"
    return f"{int(seconds // _DAY_S)}d{int(seconds % _DAY_S) // _HOUR_S:02}h"
