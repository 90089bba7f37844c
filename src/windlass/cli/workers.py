"""`windlass workers`."""

from __future__ import annotations

import click

from windlass.cli import completing, options
from windlass.cli.noun import NounGroup
from windlass.cli.output import say_either, say_rows
from windlass.cli.session import operating

COLUMNS = (
    "id",
    "kind",
    "host",
    "pid",
    "version",
    "app_version",
    "is_online",
    "running",
    "paused_at",
    "cpu_percent",
    "memory_mb",
    "loop_blocks",
    "started_at",
    "seen_at",
)
"""What is shown of each."""


@click.group(cls=NounGroup)
def workers() -> None:
    """List the processes that run jobs, and let them claim or not."""


@workers.command(name="list")
@click.option("--online", is_flag=True, help="Only those that are alive.")
@options.limit
@options.listing
@options.database
def list_(*, online: bool, limit: int, as_json: bool, database: str | None) -> None:
    """List the processes that run jobs, last seen first."""
    with operating(database) as operator:
        found = [one for one in operator.workers.list_sync(limit=limit) if one.is_online or not online]
    say_rows("workers", found, COLUMNS, as_json=as_json)


@workers.command()
@click.argument("worker", shell_complete=completing.workers)
@options.as_json
@options.database
def pause(worker: str, *, as_json: bool, database: str | None) -> None:
    """Let a worker claim nothing more, within seconds.

    It runs what it has claimed and stays alive. A new process claims again.
    """
    with operating(database) as operator:
        left = operator.workers.pause_sync(worker)
    say_either(left, f"worker {worker} claims nothing more; `windlass workers resume` lets it claim again", as_json=as_json)


@workers.command()
@click.argument("worker", shell_complete=completing.workers)
@options.as_json
@options.database
def resume(worker: str, *, as_json: bool, database: str | None) -> None:
    """Let a worker claim again."""
    with operating(database) as operator:
        left = operator.workers.resume_sync(worker)
    say_either(left, f"worker {worker} claims jobs", as_json=as_json)
