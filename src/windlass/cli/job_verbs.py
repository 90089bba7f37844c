"""What operators do to jobs: by number, and with some verbs to all that a filter matches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from windlass.cli import options
from windlass.cli.enqueue import read_object
from windlass.cli.exit_codes import REFUSED
from windlass.cli.names import refuse_unknown
from windlass.cli.output import complain, job_fields, say, say_bulk, say_either, say_json
from windlass.cli.progress import progress
from windlass.cli.session import operating, person
from windlass.client.operations import Operator
from windlass.core.filter import JobFilter
from windlass.core.job import Job
from windlass.core.job_verbs import FAILED_BY_HAND, HIGHEST_BOOST, JOB_VERBS, USUAL_BOOST
from windlass.core.page import JobQuery
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
                _each(partial(getattr(operator, f"{verb}_sync"), **given), ids, as_json=as_json)
            else:
                with progress(verb.replace("_", " "), lambda: _total(operator, wanted)) as step:
                    bulk = operator.bulk_sync(verb, wanted, given, dry_run=dry_run, on_batch=lambda done: step(done.matched))
                if not bulk.matched:
                    refuse_unknown(operator, wanted.tasks, wanted.lanes)
                say_bulk(bulk, entry.done, dry_run=dry_run, as_json=as_json)

    for option in more:
        option(command)
    return command


def _total(operator: Operator, wanted: JobFilter) -> int | None:
    page = operator.list_sync(JobQuery(filter=wanted, limit=1))
    return page.total if page.is_total_exact else None


def _told(job: Job) -> str:
    return f"job {job.id} is {job.state}"


def _each(move: Callable[[str], Job], ids: tuple[str, ...], *, as_json: bool, told: Callable[[Job], str] = _told) -> None:
    """Move jobs one by one, print each as it is then, and end with an exit code of its own when some were refused."""
    moved: list[Job] = []
    refused: list[str] = []
    with progress("jobs", lambda: len(ids)) as step:
        for done, job_id in enumerate(ids):
            try:
                moved.append(move(job_id))
            except WindlassError as error:
                refused.append(str(error))
                complain(error)
            step(done + 1)
    if as_json:
        say_json({"jobs": [job_fields(one) for one in moved], "errors": refused})
    else:
        for one in moved:
            say(told(one))
    if refused:
        raise click.exceptions.Exit(REFUSED)


cancel = _command("cancel", click.option("--reason", help="Why; kept with the job and raised where its result is awaited."))


def __getattr__(name: str) -> Callable[..., Any]:
    """Make the command of a verb that has no options of its own."""
    if name in JOB_VERBS and JOB_VERBS[name].many is not None:
        return _command(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True)
_error = click.option(
    "--error", default=FAILED_BY_HAND, show_default=True, help="What the dead letter and the run have as their error."
)


@click.command()
@_ids
@_error
@click.option("--for-good", is_flag=True, help="Whatever its retry policy would do.")
@options.as_json
@options.database
def fail(ids: tuple[str, ...], *, error: str, for_good: bool, as_json: bool, database: str | None) -> None:
    """End the runs of jobs as failed, by their retry policy or for good.

    The worker that holds such a run is refused when it reports.
    """
    with operating(database) as operator:
        _each(lambda job_id: operator.fail_sync(job_id, error, will_retry=not for_good), ids, as_json=as_json)


@click.command()
@_ids
@_error
@options.as_json
@options.database
def bury(ids: tuple[str, ...], *, error: str, as_json: bool, database: str | None) -> None:
    """Fail waiting jobs for good, each with a dead letter."""
    with operating(database) as operator:
        _each(lambda job_id: operator.bury_sync(job_id, error), ids, as_json=as_json)


@click.command(name="take-lease")
@_ids
@options.as_json
@options.database
def take_lease(ids: tuple[str, ...], *, as_json: bool, database: str | None) -> None:
    """End the leases of jobs as if their workers had stopped renewing them."""
    with operating(database) as operator:
        _each(operator.take_lease_sync, ids, as_json=as_json)


@click.command()
@_ids
@click.option(
    "--amount",
    type=click.IntRange(1, HIGHEST_BOOST),
    default=USUAL_BOOST,
    show_default=True,
    help=f"By how much; nothing goes beyond {HIGHEST_BOOST}.",
)
@options.as_json
@options.database
def boost(ids: tuple[str, ...], *, amount: int, as_json: bool, database: str | None) -> None:
    """Raise the priority of jobs that are not over."""
    with operating(database) as operator:
        _each(
            lambda job_id: operator.boost_sync(job_id, amount),
            ids,
            as_json=as_json,
            told=lambda job: f"job {job.id} has priority {job.priority}",
        )


@click.command()
@_ids
@click.option("--payload", metavar="JSON", help="Their payload, in place of the old one; - reads it from the standard input.")
@options.as_json
@options.database
def clone(ids: tuple[str, ...], *, payload: str | None, as_json: bool, database: str | None) -> None:
    """Make new jobs from finished ones, which become their parents."""
    given = None if payload is None else read_object(payload, "payload")
    with operating(database) as operator:
        _each(
            lambda job_id: operator.clone_sync(job_id, person(), given),
            ids,
            as_json=as_json,
            told=lambda job: f"job {job.id} is a clone of job {job.parent_id}",
        )


@click.command()
@click.argument("job_id", metavar="ID")
@click.option("--payload", metavar="JSON", help="The whole payload anew; - reads it from the standard input.")
@click.option("--metadata", metavar="JSON", help="The whole metadata anew.")
@click.option("--description", help="What people read about the job.")
@click.option("--priority", type=int, help="Higher is sooner; also what it returns to.")
@click.option("--max-attempts", type=int, help="How many runs at most.")
@click.option("--timeout", metavar="DURATION", help="How long a run may take.")
@options.as_json
@options.database
def edit(job_id: str, *, payload: str | None, metadata: str | None, as_json: bool, database: str | None, **given: Any) -> None:
    """Change a job that is not over; its next run stays where it is."""
    changes = {name: value for name, value in given.items() if value is not None}
    for name, text in (("payload", payload), ("metadata", metadata)):
        if text is not None:
            changes[name] = read_object(text, name)
    if not changes:
        raise click.UsageError("Say what to change.")
    with operating(database) as operator:
        job = operator.edit_sync(job_id, **changes)
    say_either(
        job_fields(job), f"job {job.id} is changed: {', '.join(name.replace('_', ' ') for name in changes)}", as_json=as_json
    )
