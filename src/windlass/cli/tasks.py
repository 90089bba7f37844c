"""`windlass tasks`."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.gates import add_gates
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say_json, say_table
from windlass.cli.session import operating

_COLUMNS = ("name", "lane", "breaker", "is_declared", "paused_at", "paused_by", "seen_at")


@click.group(cls=NounGroup)
def tasks() -> None:
    """List, pause, resume and drain the tasks that processes declared."""


@tasks.command(name="list")
@click.option("--after", default="", metavar="NAME", help="Begin after this name.")
@options.limit
@options.listing
@options.database
def list_(*, after: str, limit: int, as_json: bool, database: str | None) -> None:
    """List tasks by name."""
    with operating(database) as operator:
        found = operator.known_tasks.list_sync(after=after, limit=limit)
    if as_json:
        say_json({"tasks": [plain(one) | {"is_paused": one.paused_at is not None} for one in found]})
    else:
        say_table(({column: getattr(one, column) for column in _COLUMNS} for one in found), _COLUMNS)


add_gates(tasks, "known_tasks", "task")
