"""`windlass fail`, `bury`, `take-lease`, `boost`, `clone` and `edit`: what operators do to single jobs."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli import options
from windlass.cli.enqueue import read_object
from windlass.cli.moves import move_each
from windlass.cli.output import job_fields, say, say_json
from windlass.cli.session import operating, person

_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True)
_BY_HAND = "failed by an operator"
_error = click.option(
    "--error", default=_BY_HAND, show_default=True, help="What the dead letter and the run have as their error."
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
        move_each(lambda job_id: operator.fail_sync(job_id, error, will_retry=not for_good), ids, as_json=as_json)


@click.command()
@_ids
@_error
@options.as_json
@options.database
def bury(ids: tuple[str, ...], *, error: str, as_json: bool, database: str | None) -> None:
    """Fail waiting jobs for good, each with a dead letter."""
    with operating(database) as operator:
        move_each(lambda job_id: operator.bury_sync(job_id, error), ids, as_json=as_json)


@click.command(name="take-lease")
@_ids
@options.as_json
@options.database
def take_lease(ids: tuple[str, ...], *, as_json: bool, database: str | None) -> None:
    """End the leases of jobs as if their workers had stopped renewing them."""
    with operating(database) as operator:
        move_each(operator.take_lease_sync, ids, as_json=as_json)


@click.command()
@_ids
@click.option(
    "--amount", type=click.IntRange(1, 100), default=10, show_default=True, help="By how much; nothing goes beyond 100."
)
@options.as_json
@options.database
def boost(ids: tuple[str, ...], *, amount: int, as_json: bool, database: str | None) -> None:
    """Raise the priority of jobs that are not over."""
    with operating(database) as operator:
        move_each(
            lambda job_id: operator.boost_sync(job_id, amount),
            ids,
            as_json=as_json,
            told=lambda job: f"job {job.id} has priority {job.priority}",
        )


@click.command()
@_ids
@options.as_json
@options.database
def clone(ids: tuple[str, ...], *, as_json: bool, database: str | None) -> None:
    """Make new jobs from finished ones, which become their parents."""
    with operating(database) as operator:
        move_each(
            lambda job_id: operator.clone_sync(job_id, person()),
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
    if as_json:
        say_json(job_fields(job))
    else:
        say(f"job {job.id} is changed: {', '.join(name.replace('_', ' ') for name in changes)}")
