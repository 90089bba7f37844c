"""`windlass sources`: what `crawl` crawls."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.noun import NounGroup
from windlass.cli.output import say, say_either, say_rows
from windlass.cli.session import operating
from windlass.core.source import NewSource

_COLUMNS = ("id", "name", "url", "last_run_at")


@click.group(cls=NounGroup)
def sources() -> None:
    """List, keep and delete what `crawl` crawls."""


@sources.command(name="list")
@click.option("--after", default="", metavar="ID", help="Begin after this id.")
@options.limit
@options.listing
@options.database
def list_(*, after: str, limit: int, as_json: bool, database: str | None) -> None:
    """List sources by id."""
    with operating(database) as operator:
        found = operator.sources.list_sync(after=after, limit=limit)
    say_rows("sources", found, _COLUMNS, as_json=as_json)


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
    """Forget a source; crawls of it fail for good from now on."""
    with operating(database) as operator:
        operator.sources.delete_sync(source_id)
    say(f"source {source_id} is deleted")
