"""`windlass export`: everything, or some jobs, as lines of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import click

from windlass.cli import options
from windlass.cli.output import document_text, plain
from windlass.cli.output_file import opened_output
from windlass.cli.progress import progress, unseen
from windlass.cli.session import check_file, operating, quiet_driver
from windlass.cli.terminal import is_terminal
from windlass.client.operations import Operator
from windlass.config import load
from windlass.core.filter import JobFilter
from windlass.core.job import SHARED, Job
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.store import open_database
from windlass.store.moving.lines import FORMAT, write_lines

JOBS = "jobs"
COLUMNS = sorted(SHARED.keys() | {"id", "state", "base_priority", "cadence", "timeout_us"} - {"priority"})


@click.command()
@options.job_filters
@click.option("--everything", is_flag=True, help="All tables, for `windlass import lines` into an empty database.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; it appears once it is whole.")
@options.database
def export(wanted: JobFilter, *, everything: bool, output: Path | None, database: str | None) -> None:
    """Write everything, or the jobs that the filters mean, as lines of JSON.

    `windlass import lines` reads them: --everything is restored as it was into an empty database; jobs become new jobs of any
    database. Jobs are written without their history. No writer is let in while --everything is written.
    """
    if everything == (wanted != JobFilter()):
        raise click.UsageError("give --everything, or filters of jobs such as --state failed --task mail")
    quiet_driver()
    shown = nullcontext(unseen) if output is None and is_terminal() else progress("exporting")
    with opened_output(output) as write, shown as step:
        if everything:
            url = database or load().database_url
            check_file(url)
            with closing(open_database(url, rng=Random())) as opened:  # noqa: S311 - spreads what waits for a lock
                done = write_lines(opened, write, lambda rows, _, table: step(rows, table))
        else:
            with operating(database) as operator:
                done = _write_jobs(operator, wanted, write, step)
    click.echo(f"windlass: {done} {'rows' if everything else 'jobs'} exported", err=True)


def _write_jobs(operator: Operator, wanted: JobFilter, write: Callable[[str], object], step: Any) -> int:
    write(document_text({"windlass_export": FORMAT, "what": JOBS}) + "\n")
    done = 0
    for job in _found(operator, wanted):
        write(document_text({"job": job_document(job)}) + "\n")
        done += 1
        step(done)
    return done


def _found(operator: Operator, wanted: JobFilter) -> Iterator[Job]:
    """Read page after page, oldest first, so that numbers rise as they did."""
    query = JobQuery(filter=wanted, is_descending=False, limit=MAX_PAGE)
    while True:
        page = operator.list_sync(query)
        yield from page.jobs
        if page.next_cursor is None:
            return
        query = JobQuery(filter=wanted, is_descending=False, limit=MAX_PAGE, cursor=page.next_cursor)


def job_document(job: Job) -> dict[str, Any]:
    """Return what an enqueuer sets of a job, with its number and its state; what is not set is left out."""
    fields = plain(job)
    return {name: fields[name] for name in COLUMNS if fields[name] is not None}
