"""`windlass tail`: what happens to jobs, as it happens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from windlass.cli import completing, options
from windlass.cli.following import follow
from windlass.cli.job_events import JobEvent, JobEvents
from windlass.cli.names import hint_at_unknown
from windlass.cli.output import cell, complain
from windlass.cli.session import operating
from windlass.cli.terminal import STYLES, console, is_terminal
from windlass.core.blocking import run
from windlass.core.job import JobState
from windlass.core.one_line import one_line

if TYPE_CHECKING:
    from rich.console import Console

_ERRORS = frozenset({JobState.FAILED, JobState.SCHEDULED, JobState.CANCELLED})


@click.command()
@click.option("--task", "tasks", multiple=True, help="Only of this task; again for more.", shell_complete=completing.tasks)
@click.option("--lane", "lanes", multiple=True, help="Only of this lane; again for more.", shell_complete=completing.lanes)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options.database
def tail(*, tasks: tuple[str, ...], lanes: tuple[str, ...], as_json: bool, database: str | None) -> None:
    """Print each change of a job's state from now on, until Ctrl-C.

    A state that a job has for less than half a second may be left out; new jobs and ends are not.
    """
    show = _show_json if as_json else _drawing() if is_terminal() else _show_plain
    with operating(database) as operator:
        hint_at_unknown(operator, tasks, lanes)
        events = JobEvents(run(operator.store()), tasks, lanes)

        def look() -> bool:
            for event in events.look():
                show(event)
            sys.stdout.flush()
            if events.is_cut:
                complain("more has changed than was read; some changes are left out")
            return True

        follow(look)


def _show_json(event: JobEvent) -> None:
    click.echo(json.dumps(_fields(event), ensure_ascii=False))


def _fields(event: JobEvent) -> dict[str, Any]:
    job = event.job
    return {
        "at": event.at.astimezone(UTC).isoformat(),
        "job_id": job.id,
        "task": job.task,
        "lane": job.lane,
        "was": None if event.was is None else event.was.value,
        "state": job.state.value,
        "wait_reason": None if job.wait_reason is None else job.wait_reason.value,
        "attempt": job.attempt,
        "worker": job.worker,
        "error": job.last_error if job.state in _ERRORS else None,
    }


def _show_plain(event: JobEvent) -> None:
    job = event.job
    click.echo(
        f"{cell(event.at)}  {job.id:>6}  {one_line(job.task)}  {one_line(job.lane)}  {_move(event)}  {_detail(event)}".rstrip()
    )


def _move(event: JobEvent) -> str:
    return event.job.state.value if event.was is None else f"{event.was.value} → {event.job.state.value}"


def _detail(event: JobEvent) -> str:
    job = event.job
    error = job.last_error if job.state in _ERRORS else None
    reason = None if job.wait_reason in {None, "new"} else job.wait_reason
    attempt = f"attempt {job.attempt}" if job.attempt else None
    return one_line("  ".join(part for part in (reason, attempt, job.worker, error) if part))


def _drawing() -> Callable[[JobEvent], None]:
    out = console()
    return lambda event: _draw(out, event)


def _draw(out: Console, event: JobEvent) -> None:
    """Draw an event on one line."""
    from rich.text import Text  # noqa: PLC0415 - scripts do without

    job = event.job
    line = Text()
    line.append(f"{event.at.astimezone(UTC):%H:%M:%S}  ", style="dim")
    line.append(f"{job.id:>6}  {one_line(job.task):<16}  ")
    line.append(f"{one_line(job.lane):<8}  ", style="dim")
    if event.was is not None:
        line.append(event.was.value, style=STYLES[event.was]).append(" → ", style="dim")
    line.append(job.state.value, style=STYLES[job.state])
    out.print(line.append(f"  {_detail(event)}", style="dim"), no_wrap=True, overflow="ellipsis")
