"""`windlass dead canaries`: requeues that try a few letters first."""

from __future__ import annotations

import time
from typing import Any

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say, say_either, say_rows
from windlass.cli.session import operating, person
from windlass.core.canary import ACTIVE, MOST_CANARIES, Canary, CanaryState
from windlass.core.letters import LetterFilter

_COLUMNS = (
    "id",
    "state",
    "task",
    "fingerprint",
    "size",
    "succeeded",
    "requeued",
    "refused",
    "created_by",
    "created_at",
    "reason",
)
_LOOK_S = 1.0


@click.group(cls=NounGroup)
def canaries() -> None:
    """Requeue a few letters first, and the rest once those have succeeded."""


@canaries.command("list")
@click.option("--active", "is_active", is_flag=True, default=None, help="Only those under way.")
@options.limit
@options.listing
@options.database
def list_(*, is_active: bool | None, limit: int, as_json: bool, database: str | None) -> None:
    """List canary requeues, the newest first."""
    with operating(database) as operator:
        found = operator.canaries.list_sync(is_active=is_active, limit=limit)
    say_rows("canaries", found, _COLUMNS, as_json=as_json, fields=_fields, total=len(found))


@canaries.command()
@click.option("--size", type=int, default=5, show_default=True, help=f"How many go first, at most {MOST_CANARIES}.")
@click.option("--fingerprint", help="Open letters of one kind.")
@click.option("--task", help="Open letters of this task.")
@click.option("--all", "is_all", is_flag=True, help="Every open letter.")
@options.as_json
@options.database
def start(*, size: int, fingerprint: str | None, task: str | None, is_all: bool, as_json: bool, database: str | None) -> None:
    """Requeue the first letters; upkeep requeues the rest once those have succeeded, and stops when one fails."""
    if bool(fingerprint or task) is is_all:
        raise click.UsageError("Name a --fingerprint or a --task, or all letters with --all; not both.")
    with operating(database) as operator:
        canary = operator.canaries.start_sync(LetterFilter(task=task, fingerprint=fingerprint), size=size, by=person())
    say_either(
        _fields(canary),
        f"canary {canary.id}: {_progress(canary)}; follow it: windlass dead canaries watch {canary.id}",
        as_json=as_json,
    )


@canaries.command()
@click.argument("canary_id", metavar="ID", type=int)
@options.as_json
@options.database
def show(canary_id: int, *, as_json: bool, database: str | None) -> None:
    """Show how far a canary requeue has come."""
    with operating(database) as operator:
        canary = operator.canaries.get_sync(canary_id)
    say_either(_fields(canary), f"canary {canary.id}: {_progress(canary)}", as_json=as_json)


@canaries.command()
@click.argument("canary_id", metavar="ID", type=int)
@options.database
def watch(canary_id: int, *, database: str | None) -> None:
    """Print each step of a canary requeue until it has ended; the exit code is 1 when it has stopped."""
    with operating(database) as operator:
        seen = None
        while True:
            canary = operator.canaries.get_sync(canary_id)
            if canary != seen:
                say(f"canary {canary.id}: {_progress(canary)}")
            if canary.state not in ACTIVE:
                break
            seen = canary
            time.sleep(_LOOK_S)
    if canary.state is not CanaryState.DONE:
        raise click.exceptions.Exit(REFUSED)


@canaries.command()
@click.argument("canary_id", metavar="ID", type=int)
@options.database
def cancel(canary_id: int, *, database: str | None) -> None:
    """Leave the letters that were not requeued yet where they are; jobs that came back go on."""
    with operating(database) as operator:
        canary = operator.canaries.cancel_sync(canary_id)
    say(f"canary {canary.id} is cancelled; {canary.requeued} letters were requeued before")


def _progress(canary: Canary) -> str:
    first = f"{canary.succeeded} of {canary.size} have succeeded"
    match canary.state:
        case CanaryState.TRYING:
            return f"trying, {first}"
        case CanaryState.REQUEUING | CanaryState.DONE:
            return f"{canary.state}, {canary.requeued} letters requeued, {canary.refused} refused"
        case _:
            why = f": {canary.reason}" if canary.reason else ""
            return f"{canary.state}, {first}, {canary.requeued} letters requeued{why}"


def _fields(canary: Canary) -> dict[str, Any]:
    return {**plain(canary), "runs": [one._asdict() for one in canary.runs]}
