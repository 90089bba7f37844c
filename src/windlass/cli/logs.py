"""`windlass logs`: what a job's runs have logged."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from windlass.cli import options
from windlass.cli.following import follow as follow_up
from windlass.cli.job_view import took
from windlass.cli.output import complain
from windlass.cli.session import operating
from windlass.client.operations import Operator
from windlass.core.job import CLOSED, Execution, Job
from windlass.core.one_line import one_line
from windlass.errors import ExecutionNotFound
from windlass.worker.logs import CUT

_MOST_RUNS = 500
_NEWEST_RUNS = 20


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--follow", is_flag=True, help="Wait for more until the job has ended; Ctrl-C ends it sooner.")
@click.option("--run", "number", type=click.IntRange(1), help="Only of this run, by its number.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options.database
def logs(job_id: str, *, follow: bool, number: int | None, as_json: bool, database: str | None) -> None:
    """Print the log lines kept with the runs of JOB, oldest first; those of a long run are kept while it runs.

    The lines go to the standard output, and which run they are from to the standard error.
    """
    with operating(database) as operator:
        printed = _Printed(operator.get_sync(job_id), only=number, as_json=as_json)
        printed.add(*_read(operator, job_id, _MOST_RUNS))
        if follow:
            follow_up(lambda: printed.add(*_read(operator, job_id, _NEWEST_RUNS)))
        printed.end()


def _read(operator: Operator, job_id: str, most: int) -> tuple[Job, Sequence[Execution]]:
    # The job first: once it has ended, all its runs are there.
    job = operator.get_sync(job_id)
    return job, operator.executions_sync(job, limit=most)


class _Printed:
    """The lines of a job's runs that have been printed."""

    def __init__(self, job: Job, *, only: int | None, as_json: bool) -> None:
        self._job = job
        self._only = only
        self._as_json = as_json
        self._last = 0
        """The number of the last run that was printed to its end."""
        self._shown: Sequence[str] = ()
        """What the run after it has logged, as far as it was printed."""
        self._count = 0

    def add(self, job: Job, runs: Sequence[Execution]) -> bool:
        """Print what is new; False when there is no more to come."""
        self._job = job
        # A cancelled run has its lines once its worker has stopped, and its lease has ended.
        held = None if job.token is None else job.executions
        for run in reversed(runs):
            if run.number <= self._last:
                continue
            has_ended = run.finished_at is not None and run.number != held
            if self._only in {None, run.number}:
                self._print(run, has_ended=has_ended)
            if has_ended:
                self._last, self._shown = run.number, ()
        sys.stdout.flush()
        return job.state not in CLOSED or job.token is not None

    def _print(self, run: Execution, *, has_ended: bool) -> None:
        lines = (run.log_excerpt or "").splitlines()
        fresh = added_lines(self._shown, lines)
        is_first = not self._shown
        if is_first and not lines and not has_ended:
            return
        self._count += is_first
        self._shown = lines or self._shown
        if self._as_json:
            about = {"job_id": run.job_id, "run": run.number, "attempt": run.attempt, "status": run.status.value}
            for line in fresh:
                click.echo(json.dumps(about | {"line": line}, ensure_ascii=False))
            return
        sys.stdout.flush()
        which = f"run {run.number}, attempt {run.attempt}"
        ended = f"{which}: {run.status.value} after {took(run)}"
        if is_first:
            complain(f"{which}: running" if not has_ended else ended if lines else f"{ended}; it logged nothing")
        for line in fresh:
            click.echo(one_line(line))
        if has_ended and not is_first:
            sys.stdout.flush()
            complain(ended)

    def end(self) -> None:
        """Print the job's state, where nothing was printed or the user waited for its end."""
        if self._only is not None and not self._count:
            raise ExecutionNotFound(self._job.id, self._only)
        if not self._as_json and (not self._count or self._job.state in CLOSED):
            rest = "" if self._count else "; no run of it has ended"
            complain(f"job {self._job.id} is {self._job.state.value}{rest}")


def added_lines(shown: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    """Return the lines that have come after those shown; an excerpt loses lines only at its beginning."""
    known, now = _without_mark(shown), _without_mark(lines)
    for start in range(len(known)):
        if now[: len(known) - start] == known[start:]:
            return now[len(known) - start :]
    return lines


def _without_mark(lines: Sequence[str]) -> Sequence[str]:
    return lines[1:] if lines and lines[0] == CUT else lines
