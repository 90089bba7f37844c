"""`windlass dead`: dead letters."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli import completing, options
from windlass.cli.canaries import canaries
from windlass.cli.enqueue import read_object
from windlass.cli.exit_codes import REFUSED
from windlass.cli.job_view import show_letter
from windlass.cli.names import hint_at_unknown, refuse_unknown
from windlass.cli.noun import NounGroup
from windlass.cli.output import complain, letter_fields, plain, say, say_bulk, say_either, say_json, say_table
from windlass.cli.progress import progress
from windlass.cli.session import operating, person
from windlass.client.operations import Operator
from windlass.core.job_verbs import Bulk
from windlass.core.letter_page import LetterQuery, LetterStatus
from windlass.core.letters import LetterFilter, Settled
from windlass.errors import WindlassError

_COLUMNS = ("id", "job_id", "task", "lane", "deaths", "died_at", "acknowledged_by", "closed_reason", "error")


@click.group(cls=NounGroup)
def dead() -> None:
    """List, read, acknowledge and requeue the letters of jobs that failed for good."""


dead.add_command(canaries)


@dead.command(name="list")
@click.option("--status", type=click.Choice([one.value for one in LetterStatus]), help="Default: every one.")
@click.option("--task", help="Only of this task.", shell_complete=completing.tasks)
@click.option("--fingerprint", help="Only deaths of one kind.")
@click.option("--since", metavar="TIME", help="Died at this time or later, as in 2026-01-15T10:30Z.")
@options.limit
@click.option("--cursor", help="Where the page before ended.")
@options.listing
@options.database
def list_(*, status: str | None, since: str | None, as_json: bool, database: str | None, **given: Any) -> None:
    """List dead letters, newest death first."""
    query = LetterQuery(
        status=None if status is None else LetterStatus(status),
        since=None if since is None else options.read_time("since", since),
        **given,
    )
    with operating(database) as operator:
        page = operator.letters.list_sync(query)
        if not page.total:
            hint_at_unknown(operator, _tasks(query.task))
    if as_json:
        say_json({"dead_letters": [letter_fields(one) for one in page.letters], **_totals(page)})
        return
    say_table(({column: getattr(one, column) for column in _COLUMNS} for one in page.letters), _COLUMNS)
    say(f"{len(page.letters)} of {page.total if page.is_total_exact else f'at least {page.total}'}")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


def _totals(page: Any) -> dict[str, Any]:
    return {"total": page.total, "is_total_exact": page.is_total_exact, "next_cursor": page.next_cursor}


@dead.command()
@click.argument("letter_id", metavar="ID", type=int)
@options.as_json
@options.database
def show(letter_id: int, *, as_json: bool, database: str | None) -> None:
    """Show a dead letter: the error with its traceback, the job as it was, and what to do next."""
    with operating(database) as operator:
        letter = operator.letters.get_sync(letter_id)
    if as_json:
        say_json(letter_fields(letter))
    else:
        show_letter(letter)


_GROUP_COLUMNS = ("fingerprint", "task", "letters", "in_hour", "in_day", "in_week", "last_died_at", "version", "new", "error")


@dead.command()
@click.option("--open", "is_open", is_flag=True, default=None, help="Only letters that were not dealt with.")
@click.option("--new", "is_new", is_flag=True, default=None, help="Only kinds that first appeared with the newest version.")
@options.limit
@options.listing
@options.database
def groups(*, is_open: bool | None, is_new: bool | None, limit: int, as_json: bool, database: str | None) -> None:
    """Group dead letters by what killed the jobs, with how many died within an hour, a day and a week."""
    with operating(database) as operator:
        found = operator.letters.groups_sync(is_open=is_open, is_new=is_new, limit=limit)
        counts = operator.letters.counts_sync()
    if as_json:
        say_json({"groups": plain(found.groups), "is_complete": found.is_complete, "counts": plain(counts)})
        return
    say_table((one._asdict() | {"new": one.is_new or None} for one in found.groups), _GROUP_COLUMNS)
    least = "" if counts.is_exact else "at least "
    say(f"in all {least}{counts.hour} within 1 h, {counts.day} within 24 h, {counts.week} within 7 d; {counts.open} open")
    if not found.is_complete:
        say("only the newest 5000 letters were grouped")


@dead.command()
@click.argument("letter_id", metavar="ID", type=int)
@click.option("--payload", required=True, metavar="JSON", help="A JSON object, or - to read one from the standard input.")
@options.as_json
@options.database
def edit(letter_id: int, *, payload: str, as_json: bool, database: str | None) -> None:
    """Change what the job of an open letter comes back with; the payload it died with is kept."""
    document = read_object(payload, "payload")
    with operating(database) as operator:
        letter = operator.letters.edit_sync(letter_id, document, by=person())
    say_either(
        letter_fields(letter),
        f"job {letter.job_id} will come back with the new payload: windlass dead requeue {letter.id}",
        as_json=as_json,
    )


@dead.command()
@click.argument("letter_id", metavar="ID", type=int)
@click.argument("text")
@options.as_json
@options.database
def note(letter_id: int, text: str, *, as_json: bool, database: str | None) -> None:
    """Add a note to a letter, for its next readers."""
    with operating(database) as operator:
        letter = operator.letters.add_note_sync(letter_id, text, by=person())
    if as_json:
        say_json(letter_fields(letter))
    else:
        notes = len(letter.notes)
        say(f"dead letter {letter.id} has {notes} {'note' if notes == 1 else 'notes'}")


_meant = (
    click.argument("ids", metavar="[ID]...", nargs=-1, type=int),
    click.option("--task", help="Every open letter of this task.", shell_complete=completing.tasks),
    click.option("--fingerprint", help="Every open letter of one kind."),
    click.option("--all", "is_all", is_flag=True, help="Every open letter."),
    click.option("--dry-run", is_flag=True, help="Only count what the filters match."),
    options.as_json,
    options.database,
)


def _settling(command: Any) -> Any:
    for option in reversed(_meant):
        command = option(command)
    return command


@dead.command()
@click.option("--note", help="What to remember.")
@_settling
def acknowledge(ids: tuple[int, ...], *, note: str | None, database: str | None, **given: Any) -> None:
    """Acknowledge letters; retention may delete them then."""
    wanted = _wanted(ids, given)
    with operating(database) as operator:
        if wanted is None:
            _tell(operator.letters.acknowledge_sync(ids, by=person(), note=note), "acknowledged", as_json=given["as_json"])
        else:
            with progress("acknowledge") as step:
                bulk = operator.letters.acknowledge_all_sync(
                    wanted, by=person(), note=note, dry_run=given["dry_run"], on_batch=lambda done: step(done.matched)
                )
            _refuse_unknown(operator, wanted, bulk)
            say_bulk(bulk, "acknowledged", **_shown(given))


@dead.command()
@_settling
def requeue(ids: tuple[int, ...], *, database: str | None, **given: Any) -> None:
    """Bring back the jobs of open letters, with a fresh start; twice does not run twice."""
    wanted = _wanted(ids, given)
    with operating(database) as operator:
        if wanted is not None and wanted.fingerprint is not None and wanted.task is None:
            say_bulk(
                operator.letters.requeue_group_sync(wanted.fingerprint, dry_run=given["dry_run"]), "requeued", **_shown(given)
            )
        elif wanted is None:
            _tell(operator.letters.requeue_sync(ids), "requeued", as_json=given["as_json"])
        else:
            with progress("requeue") as step:
                bulk = operator.letters.requeue_all_sync(
                    wanted, dry_run=given["dry_run"], on_batch=lambda done: step(done.matched)
                )
            _refuse_unknown(operator, wanted, bulk)
            say_bulk(bulk, "requeued", **_shown(given))


def _wanted(ids: tuple[int, ...], given: dict[str, Any]) -> LetterFilter | None:
    has_filter = bool(given["task"] or given["fingerprint"] or given["is_all"])
    if bool(ids) is has_filter:
        raise click.UsageError("Name letters, or say which are meant by filters or --all; not both.")
    if ids and given["dry_run"]:
        raise click.UsageError("--dry-run goes with filters.")
    return None if ids else LetterFilter(task=given["task"], fingerprint=given["fingerprint"])


def _refuse_unknown(operator: Operator, wanted: LetterFilter, bulk: Bulk) -> None:
    if not bulk.matched:
        refuse_unknown(operator, _tasks(wanted.task))


def _tasks(task: str | None) -> tuple[str, ...]:
    return () if task is None else (task,)


def _shown(given: dict[str, Any]) -> dict[str, bool]:
    return {"dry_run": given["dry_run"], "as_json": given["as_json"]}


def _tell(settled: Settled, done: str, *, as_json: bool) -> None:
    if as_json:
        changed, refused = ([letter_fields(one) for one in some] for some in (settled.changed, settled.refused))
        say_json({"dead_letters": changed, "refused": refused, "missing": settled.missing})
    else:
        for letter in settled.changed:
            say(f"dead letter {letter.id} of job {letter.job_id} is {done}")
    problems = [settled._replace(changed=(), refused=(one,)) for one in settled.refused]
    problems += [settled._replace(changed=(), refused=(), missing=(one,)) for one in settled.missing]
    for problem in problems:
        try:
            problem.one()
        except WindlassError as error:
            complain(error)
    if problems:
        raise click.exceptions.Exit(REFUSED)
