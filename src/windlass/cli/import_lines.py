"""`windlass import lines`: what `windlass export` wrote."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any, TextIO

import click

from windlass.cli import options
from windlass.cli.exit_codes import PARTLY
from windlass.cli.export import COLUMNS, JOBS
from windlass.cli.output import complain, say
from windlass.cli.progress import ProgressStep, progress
from windlass.cli.session import operating, person, quiet_driver
from windlass.config import load
from windlass.core.blocking import run
from windlass.core.job import WAITING, JobState, NewJob
from windlass.core.payload import encode
from windlass.errors import InvalidInput
from windlass.store import Store, open_database
from windlass.store.moving.lines import EVERYTHING, FORMAT, LinesOrigin, read_line
from windlass.store.moving.move import end_move, fill

_AT_ONCE = 200
# Columns that hold JSON text, beside the payload.
_DOCUMENTS = ("metadata", "item_key", "cadence")
# What a line written by hand may leave out.
_USUAL = {"lane": "default", "base_priority": 0, "retry": "task", "spawn": False}
Lines = Iterator[tuple[int, str]]


@click.command("lines")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--apply", "is_applied", is_flag=True, help="Store it; without it nothing is stored.")
@options.database
def import_lines(file: TextIO, *, is_applied: bool, database: str | None) -> None:
    """Read FILE, which `windlass export` wrote; - is the standard input.

    An export of everything goes into an empty database and is there as it was, numbers and all; killed, the same command goes on.
    Exported jobs become new jobs with numbers of their own: those that waited keep their time, those that were over run again.
    Exit code 3: some jobs were left out, because their unique key or name is held.
    """
    quiet_driver()
    lines: Lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    number, text = next(lines, (1, ""))
    header = read_line(number, text)
    if header.get("windlass_export") != FORMAT or header.get("what") not in {EVERYTHING, JOBS}:
        raise InvalidInput("file", file.name, "is not what `windlass export` writes")
    if header["what"] == EVERYTHING:
        _restore(LinesOrigin(header, lines), database, is_applied=is_applied)
    else:
        _enqueue(lines, database, is_applied=is_applied)
    if not is_applied:
        click.echo("nothing was stored; add --apply to do it")


def _restore(origin: LinesOrigin, database: str | None, *, is_applied: bool) -> None:
    if not is_applied:
        total = sum(map(origin.count, origin.tables))
        say(f"an export of everything: {total} rows, {origin.count('windlass_jobs')} of them jobs")
        return
    with closing(open_database(database or load().database_url, rng=Random())) as target:  # noqa: S311 - spreads waits
        with progress("importing") as step:
            moved = fill(target, origin, lambda done, total, table: step(done, f"{table}, {done * 100 // total} %"))
        end_move(target)
    say(f"{moved.rows} rows are there, {moved.tables['windlass_jobs']} of them jobs")


def _enqueue(lines: Lines, database: str | None, *, is_applied: bool) -> None:
    made = ((number, document, _job(number, document)) for number, document in _documents(lines))
    if not is_applied:
        found = Counter((job.task, document.get("state")) for _, document, job in made)
        for (task, state), jobs in sorted(found.items(), key=str):
            click.echo(f"{jobs} of task {task}, which were {state}")
        return
    with operating(database, makes_file=True) as operator, progress("importing") as step:
        stored, held = _store(run(operator.store()), made, step)
    say(f"{stored} jobs are enqueued")
    for number, holder in held:
        complain(f"line {number}: job {holder} has this key or name already")
    sys.exit(PARTLY if held else 0)


def _store(
    store: Store, made: Iterator[tuple[int, dict[str, Any], NewJob]], step: ProgressStep
) -> tuple[int, list[tuple[int, int]]]:
    """Enqueue jobs; returns how many were, and those that were not with the holders of their keys."""
    stored, held = 0, []
    while part := list(islice(made, _AT_ONCE)):
        answers = run(store.enqueue([job for _, _, job in part]))
        for (number, document, _), answer in zip(part, answers, strict=True):
            if answer.is_duplicate:
                held.append((number, answer.id))
                continue
            stored += 1
            if document.get("state") == JobState.PAUSED:
                run(store.pause([answer.id]))
        step(stored)
    return stored, held


def _documents(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in lines:
        document = read_line(number, text).get("job")
        if not isinstance(document, dict):
            raise InvalidInput(f"line {number}", text[:80], "must have an object `job`")
        yield number, document


def _job(number: int, document: dict[str, Any]) -> NewJob:
    columns: dict[str, Any] = dict.fromkeys(COLUMNS) | _USUAL | document
    try:
        columns |= {name: encode(document[name]) for name in _DOCUMENTS if name in document}
        columns |= {"payload": encode(document.get("payload", {}))}
        is_waiting = document.get("state") in WAITING
        return NewJob.like(
            columns,
            parent_id=None,
            run_at=datetime.fromisoformat(document["run_at"]) if is_waiting and "run_at" in document else None,
            created_by=columns["created_by"] or person(),
        )
    except (InvalidInput, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"line {number}", document, f"cannot be made a job: {error}") from None
