"""A job as a page at a terminal: headline, timeline of its attempts, payload, result, log, error, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group
from rich.highlighter import JSONHighlighter
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from windlass.cli.job_view import advice, document_lines, error_lines, facts, state_text, took
from windlass.cli.relative_time import now_here, relative
from windlass.cli.table import draw_table
from windlass.cli.terminal import STYLES, console
from windlass.core.job import DeadLetter, Execution, Job
from windlass.core.one_line import one_line
from windlass.core.retry import Profile

_RUN_COLUMNS = ("run", "attempt", "started", "took", "timeline", "status", "reason", "worker", "error")
_SPARE_COLUMNS = ("attempt", "reason", "worker", "timeline")
# They have a place of their own on the page.
_ELSEWHERE = frozenset({"job", "task", "state", "payload", "metadata"})
_BAR = 16
_MOST_LOG_LINES = 20


def draw_job(job: Job, runs: Sequence[Execution], letters: Sequence[DeadLetter], profiles: Mapping[str, Profile]) -> None:
    """Draw a job; the runs come newest first."""
    out, now = console(), now_here()
    out.print(_headline(job))
    out.print(_facts(facts(job, profiles, lambda at: _moment(at, now))))
    if runs:
        _title(out, "attempts")
        draw_table(_timeline(runs, now), _RUN_COLUMNS, _SPARE_COLUMNS)
    newest = runs[0] if runs else None
    for name, text in (("payload", job.payload_json), ("metadata", job.metadata_json), ("result", newest and newest.result_json)):
        if text and text != "{}":
            _document(out, name, text)
    if newest is not None and newest.log_excerpt:
        _log(out, job, newest.log_excerpt.splitlines())
    if error := error_lines(job, newest):
        _title(out, "error")
        _lines(out, error[:1], "bold red")
        _lines(out, error[1:], "red")
    _title(out, "next")
    _next(out, job, letters)


def _headline(job: Job) -> Rule:
    title = Text(f"job {job.id}  {one_line(job.task)}  ", style="bold")
    return Rule(title.append(one_line(state_text(job)), style=STYLES[job.state]), align="left", style="dim")


def _facts(known: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in known.items():
        if name not in _ELSEWHERE and value not in (None, ""):
            grid.add_row(name, Text(one_line(str(value))))
    return grid


def _moment(at: datetime, now: datetime) -> str:
    return f"{relative(at, now)} ({at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC)"


def _timeline(runs: Sequence[Execution], now: datetime) -> list[dict[str, Any]]:
    """Make the rows of the attempts, oldest first; each bar stands where its run was between the first start and the last end."""
    first = min(run.started_at for run in runs)
    last = max(max(run.finished_at or now, run.started_at) for run in runs)
    return [
        {
            "run": run.number,
            "attempt": run.attempt,
            "started": run.started_at,
            "took": took(run),
            "timeline": _bar(run, first, last),
            "status": run.status,
            "reason": run.reason,
            "worker": run.worker,
            "error": run.error,
        }
        for run in reversed(runs)
    ]


def _bar(run: Execution, first: datetime, last: datetime) -> str:
    whole = (last - first).total_seconds() or 1.0
    start = min(_BAR - 1, int((run.started_at - first).total_seconds() / whole * _BAR))
    end = ((run.finished_at or last) - first).total_seconds() / whole * _BAR
    length = max(1, min(_BAR - start, round(end - start)))
    return f"{'·' * start}{'━' * length}{'·' * (_BAR - start - length)}"


def _title(out: Console, name: str) -> None:
    out.print(Group(Text(), Text(name, style="bold")))


def _lines(out: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        out.print(Padding(Text(one_line(line), style=style, overflow="fold"), (0, 0, 0, 2)))


def _document(out: Console, name: str, text: str) -> None:
    _title(out, name)
    colours = JSONHighlighter()
    for line in document_lines(text):
        out.print(Padding(colours(Text(one_line(line), overflow="fold")), (0, 0, 0, 2)))


def _log(out: Console, job: Job, lines: Sequence[str]) -> None:
    _title(out, "log")
    if len(lines) > _MOST_LOG_LINES:
        _lines(out, [f"{len(lines) - _MOST_LOG_LINES} lines before these: windlass logs {job.id}"], "dim")
    _lines(out, lines[-_MOST_LOG_LINES:])


def _next(out: Console, job: Job, letters: Sequence[DeadLetter]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for one in advice(job, letters):
        grid.add_row(Text(one.command, style="bold"), Text(one.effect, style="dim"))
    out.print(Padding(grid, (0, 0, 0, 2)))
