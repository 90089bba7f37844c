"""`windlass trace`: everything of one correlation id."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.output import complain, plain, say, say_json
from windlass.cli.session import operating
from windlass.cli.waterfall import ASCII, DRAWN, draw
from windlass.client.operations import Operator
from windlass.core.related import Span, Trace
from windlass.errors import JobNotFound, shown

_USUAL_COLUMNS = 100
_NARROWEST = 60


@click.command()
@click.argument("correlation_id", metavar="ID")
@click.option("--after", type=int, default=0, help="Only jobs with a higher number, where there are more than 500.")
@click.option(
    "--ascii", "is_ascii", is_flag=True, help="Draw with plain ASCII; this is also done where nothing else can be shown."
)
@options.as_json
@options.database
def trace(correlation_id: str, *, after: int, is_ascii: bool, as_json: bool, database: str | None) -> None:
    """Show every job of a correlation id as a tree, with waits, runs and states along one axis of time.

    The number or UUID of a job shows the correlation of that job. A correlation id that is a number comes before a job's number.
    """
    with operating(database) as operator:
        found = _read(operator, correlation_id, after)
    if as_json:
        say_json(_fields(found))
        return
    if not found.spans:
        say(f"no job of correlation {found.correlation_id} has a number above {after}")
        return
    say(f"correlation {found.correlation_id}: {len(found.spans)} jobs{'' if found.is_complete else ', and more'}")
    glyphs = ASCII if is_ascii or not _can_draw() else DRAWN
    for line in draw(found, max(_NARROWEST, shutil.get_terminal_size((_USUAL_COLUMNS, 24)).columns), glyphs):
        click.echo(line)
    for span in found.spans:
        if span.job.last_error is not None:
            say(f"job {span.job.id}: {span.job.last_error}")
    if not found.is_complete:
        say(f"more with --after {found.last_id}")


def _read(operator: Operator, correlation_id: str, after: int) -> Trace:
    try:
        return operator.trace_sync(correlation_id, after=after)
    except JobNotFound:
        told = f"correlation {shown(correlation_id)} not found: no job has it, and none has this number or UUID"
        complain(f"{told}; `windlass jobs --json` shows the correlation id of each")
        raise click.exceptions.Exit(REFUSED) from None


def _can_draw() -> bool:
    try:
        "".join(DRAWN).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _fields(found: Trace) -> dict[str, Any]:
    last = None if found.is_complete else found.last_id
    jobs = [_span(span, found) for span in found.spans]
    return {"correlation_id": found.correlation_id, "at": plain(found.at), "jobs": jobs, "total": len(jobs), "next": last}


def _span(span: Span, found: Trace) -> dict[str, Any]:
    job = span.job
    names = (
        "task",
        "lane",
        "state",
        "wait_reason",
        "parent_id",
        "created_at",
        "run_at",
        "started_at",
        "finished_at",
        "closed_at",
    )
    times = {"wait_ms": span.wait_ms, "run_ms": span.run_ms(found.at), "executions": job.executions, "attempts": job.attempt}
    runs = [plain(run) | {"duration_ms": run.duration_ms} for run in span.runs]
    facts = {name: plain(getattr(job, name)) for name in names}
    return {"number": job.id, "depth": span.depth, **facts, **times, "last_error": job.last_error, "runs": runs}
