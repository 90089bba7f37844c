"""`windlass workers`."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.output import plain, say_json, say_table
from windlass.cli.session import operating

_COLUMNS = ("id", "kind", "host", "pid", "version", "is_online", "running", "loop_blocks", "started_at", "seen_at")


@click.command()
@click.option("--online", is_flag=True, help="Only those that are alive.")
@options.limit
@options.as_json
@options.database
def workers(*, online: bool, limit: int, as_json: bool, database: str | None) -> None:
    """List the processes that run jobs, last seen first."""
    with operating(database) as operator:
        found = [one for one in operator.workers.list_sync(limit=limit) if one.is_online or not online]
    if as_json:
        say_json({"workers": [plain(one) for one in found]})
    else:
        say_table(({column: getattr(one, column) for column in _COLUMNS} for one in found), _COLUMNS)
