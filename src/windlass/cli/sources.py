"""`windlass sources`: what `crawl` crawls."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.noun import NounGroup, add_list
from windlass.cli.output import say, say_either
from windlass.cli.session import operating
from windlass.core.source import NewSource

_COLUMNS = ("id", "name", "url", "last_run_at")


@click.group(cls=NounGroup)
def sources() -> None:
    """List, keep and delete what `crawl` crawls."""


add_list(sources, "sources", _COLUMNS, by="id")


@sources.command(name="set")
@click.argument("source_id", metavar="ID")
@click.argument("url")
@click.option("--name", help="Default: the id.")
@options.as_json
@options.database
def set_(source_id: str, url: str, *, name: str | None, as_json: bool, database: str | None) -> None:
    """Keep a source; one with the same ID is changed."""
    with operating(database) as operator:
        kept = operator.sources.upsert_sync(NewSource(source_id, name or source_id, url))
    say_either(kept, f"source {kept.id} is {kept.url}", as_json=as_json)


@sources.command()
@click.argument("source_id", metavar="ID")
@options.database
def delete(source_id: str, *, database: str | None) -> None:
    """Delete a source; crawls of it fail for good from now on."""
    with operating(database) as operator:
        operator.sources.delete_sync(source_id)
    say(f"source {source_id} is deleted")
