"""`windlass items`: what workers have found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from windlass.cli import options
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say_json, say_table
from windlass.cli.output_file import opened_output
from windlass.cli.progress import ProgressStep, progress, unseen
from windlass.cli.session import operating
from windlass.cli.terminal import is_terminal
from windlass.client.item_export import ExportRange, ItemFormat, Part, export
from windlass.client.job_ref import number_of
from windlass.client.operations import Operator

F = TypeVar("F", bound=Callable[..., Any])
_COLUMNS = ("id", "job_id", "created_at", "data")


@click.group(cls=NounGroup)
def items() -> None:
    """List and export what workers have found."""


def _whose(command: F) -> F:
    """Add the options that select the job or the collection of items."""
    command = click.option("--after", type=click.IntRange(0), default=0, metavar="ID", help="Begin after this item.")(command)
    command = click.option("--collection", metavar="NAME", help="The items of a collection; a job's is its task by default.")(
        command
    )
    return click.argument("job", required=False)(command)


@items.command(name="list")
@_whose
@options.limit
@options.listing
@options.database
def list_(job: str | None, *, collection: str | None, after: int, limit: int, as_json: bool, database: str | None) -> None:
    """List the items that JOB was the first to find, or those of a collection, in the order they came."""
    with operating(database) as operator:
        wanted = _wanted(operator, job, collection, after)
        found = operator.items.list_sync(job_id=wanted.job_id, collection=collection, after=after, limit=limit)
        count = operator.items.count_sync(collection, job_id=wanted.job_id)
    if as_json:
        rows = [plain(one) for one in found]
        say_json({"items": rows, "total": count.items, "is_total_exact": count.is_exact})
        return
    say_table(({column: getattr(one, column) for column in _COLUMNS} | {"data": one.data_json} for one in found), _COLUMNS)
    if len(found) < count.items:
        more = "" if count.is_exact else "at least "
        click.echo(f"{len(found)} of {more}{count.items}", err=True)


@items.command(name="export")
@_whose
@click.option(
    "--format",
    "kind",
    type=click.Choice([kind.value for kind in ItemFormat]),
    default=ItemFormat.JSONL.value,
    show_default=True,
    help="A JSON object a line, or a table.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; it appears once it is whole.")
@options.database
def export_(job: str | None, *, collection: str | None, after: int, kind: str, output: Path | None, database: str | None) -> None:
    """Write all items that JOB was the first to find, or a whole collection.

    In a table, texts that a spreadsheet would run as a formula get an apostrophe in front, and what has parts is JSON.
    """
    with operating(database) as operator, opened_output(output) as write:
        wanted = _wanted(operator, job, collection, after)
        # A bar would be drawn between the items.
        shown = nullcontext(unseen) if output is None and is_terminal() else progress("items", lambda: _total(operator, wanted))
        with shown as step:
            done, last_id = asyncio.run(_export(operator, wanted, ItemFormat(kind), write, step=step))
        rest = f"; --after {last_id} leaves them out" if done else ""
        click.echo(f"windlass: {done} items exported{rest}", err=True)


def _wanted(operator: Operator, job: str | None, collection: str | None, after: int) -> ExportRange:
    if (job is None) == (collection is None):
        raise click.UsageError("name a job, or a collection with --collection")
    if job is None:
        return ExportRange(collection=collection, after=after)
    number = number_of(job)
    operator.get_sync(number)
    return ExportRange(job_id=number, after=after)


async def _export(
    operator: Operator, wanted: ExportRange, kind: ItemFormat, write: Callable[[str], object], *, step: ProgressStep
) -> tuple[int, int]:
    """Write the items; returns how many there were, and the id of the last."""
    done = last_id = 0
    parts: AsyncIterator[Part] = export((await operator.store()).items, wanted, kind)
    async for part in parts:
        write(part.text)
        done, last_id = done + part.items, part.last_id or last_id
        step(done)
    return done, last_id


def _total(operator: Operator, wanted: ExportRange) -> int | None:
    count = operator.items.count_sync(wanted.collection, job_id=wanted.job_id)
    # What comes after an item is not counted anywhere.
    return count.items if count.is_exact and not wanted.after else None
