"""`windlass move`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from random import Random

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.output import complain, say, say_json
from windlass.cli.progress import progress
from windlass.cli.session import check_file, quiet_driver
from windlass.config import load
from windlass.core.blocking import run
from windlass.errors import ConfigError
from windlass.store import open_blocking_store, open_database, parse_url
from windlass.store.doctor import BrokenRule, check
from windlass.store.moving.move import MoveResult, end_move, move

_MOST_SHOWN = 10


@click.command("move")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--force", is_flag=True, help="Move although processes work with FROM or jobs are leased there.")
@click.option("--no-check", is_flag=True, help="Compare counts only, and leave out `windlass doctor --deep`.")
@options.as_json
def move_(source: str, target: str, *, force: bool, no_check: bool, as_json: bool) -> None:
    """Copy everything from one database into another, empty one.

    FROM and TO are URLs, as in `windlass move sqlite:///jobs.db postgresql://localhost/jobs`. Stop producers and workers first.
    FROM is only read, and no writer is let in meanwhile. Killed at any moment, the same command goes on where it was. TO is
    refused to every process until all has arrived. Exit code 1: it was refused, or the doctor finds broken rules.
    """
    quiet_driver()
    check_file(source)
    if _place(source) == _place(target):
        raise ConfigError("FROM and TO are the same database")
    chance = Random()  # noqa: S311 - spreads what waits for a lock
    with closing(open_database(source, rng=chance)) as theirs, closing(open_database(target, rng=chance)) as ours:
        with progress("moving") as step:
            # How many rows there are is known once the source is locked.
            moved = move(
                theirs, ours, lambda done, total, table: step(done, f"{table}, {done * 100 // total} %"), is_forced=force
            )
        broken = [] if no_check else _checked(target, chance)
        end_move(ours)
    _tell(moved, broken, as_json=as_json)
    sys.exit(REFUSED if broken else 0)


def _place(url: str) -> str:
    scheme, rest, _ = parse_url(url)
    return str(Path(rest).resolve()) if scheme == "sqlite" else rest


def _checked(target: str, chance: Random) -> list[BrokenRule]:
    """Hold every row to the rules of its table, as `windlass doctor --deep` does."""
    settings = load()
    store = open_blocking_store(target, rng=chance, profiles=settings.profiles)
    try:
        with progress("checking") as step:
            checking = check(
                store,
                profiles=settings.profiles,
                kept=settings.retention,
                notice=lambda what, rows: step(rows, f"checking {what}"),
            )
            return run(checking)
    finally:
        run(store.aclose())


def _tell(moved: MoveResult, broken: list[BrokenRule], *, as_json: bool) -> None:
    if as_json:
        found = [{"rule": one.rule, "job_id": one.job_id, "detail": one.detail} for one in broken]
        say_json({"rows": moved.rows, "tables": dict(moved.tables), "left_out": list(moved.left_out), "broken_rules": found})
        return
    say(f"{moved.rows} rows are there, {moved.tables['windlass_jobs']} of them jobs")
    for name in moved.left_out:
        complain(f"{name} was left out: the target has no such table")
    for one in broken[:_MOST_SHOWN]:
        complain(f"{one.rule}: {'' if one.job_id is None else f'job {one.job_id}: '}{one.detail}")
    if broken:
        complain(f"{len(broken)} broken rules; all rows are there, so `windlass doctor --deep` shows whether FROM has them too")
