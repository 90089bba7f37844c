"""`windlass retry`, `cancel`, `pause`, `resume` and `run-now`: of jobs by number, or of all that a filter matches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.names import refuse_unknown
from windlass.cli.output import complain, job_fields, say, say_json
from windlass.cli.session import operating
from windlass.core.bulk import Bulk
from windlass.core.filter import JobFilter
from windlass.core.job import Job
from windlass.core.job_verbs import JOB_VERBS
from windlass.errors import WindlassError

_EVERYTHING = JobFilter()


def _command(verb: str, *more: Callable[..., Any]) -> Callable[..., Any]:
    """Make the command of a verb; `more` are the options that only this verb has, in the command line and in the store."""
    entry = JOB_VERBS[verb]

    @click.command(
        name=verb.replace("_", "-"),
        help=f"{entry.many}\n\nJobs are named by number or UUID, or meant by filters; --dry-run only counts.",
    )
    @click.argument("ids", metavar="[ID]...", nargs=-1)
    @options.job_filters
    @click.option("--all", "is_all", is_flag=True, help="Every job that can be; without it, a filter or an ID is needed.")
    @click.option("--dry-run", is_flag=True, help="Only count what the filters match.")
    @options.as_json
    @options.database
    def command(
        ids: tuple[str, ...],
        *,
        wanted: JobFilter,
        is_all: bool,
        dry_run: bool,
        as_json: bool,
        database: str | None,
        **given: str | None,
    ) -> None:
        has_filter = wanted != _EVERYTHING
        if bool(ids) is (has_filter or is_all):
            raise click.UsageError("Name jobs, or say which are meant by filters or --all; not both.")
        if ids and dry_run:
            raise click.UsageError("--dry-run goes with filters.")
        with operating(database) as operator:
            if ids:
                move_each(partial(getattr(operator, f"{verb}_sync"), **given), ids, as_json=as_json)
            else:
                bulk = operator.bulk_sync(verb, wanted, given, dry_run=dry_run)
                if not bulk.matched:
                    refuse_unknown(operator, wanted.tasks, wanted.lanes)
                _tell(bulk, entry.done, dry_run=dry_run, as_json=as_json)

    for option in more:
        option(command)
    return command


def _told(job: Job) -> str:
    return f"job {job.id} is {job.state}"


def move_each(move: Callable[[str], Job], ids: tuple[str, ...], *, as_json: bool, told: Callable[[Job], str] = _told) -> None:
    """Move jobs one by one, print each as it is then, and end with an exit code of its own when some were refused."""
    moved: list[Job] = []
    refused: list[str] = []
    for job_id in ids:
        try:
            moved.append(move(job_id))
        except WindlassError as error:
            refused.append(str(error))
            complain(error)
    if as_json:
        say_json({"jobs": [job_fields(one) for one in moved], "errors": refused})
    else:
        for one in moved:
            say(told(one))
    if refused:
        raise click.exceptions.Exit(REFUSED)


def _tell(bulk: Bulk, done: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        say_json({**bulk._asdict(), "dry_run": dry_run})
    elif dry_run:
        say(f"{bulk.matched} match; nothing was changed")
    else:
        say(f"{bulk.matched} matched: {bulk.changed} {done}, {bulk.refused} refused")


retry = _command("retry")
cancel = _command("cancel", click.option("--reason", help="Why; kept with the job and told to whoever waits for it."))
pause = _command("pause")
resume = _command("resume")
run_now = _command("run_now")
