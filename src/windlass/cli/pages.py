"""`windlass pages`: what crawls have found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from windlass.cli import options
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say, say_fields, say_json, say_rows
from windlass.cli.session import operating
from windlass.core.webpage import WebPage

_COLUMNS = ("id", "source_id", "title", "url", "fetched_at")
_source = click.option("--source-id", help="Only pages of this source.")
_after = click.option("--after", type=click.IntRange(0), default=0, metavar="ID", help="Begin after this page.")


@click.group(cls=NounGroup)
def pages() -> None:
    """Search, show and delete what crawls have found."""


@pages.command(name="list")
@_source
@_after
@options.limit
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None, **wanted: Any) -> None:
    """List pages in the order they were found."""
    with operating(database) as operator:
        found = operator.pages.list_sync(**wanted)
    _say(found, as_json=as_json)


@pages.command()
@click.argument("words", nargs=-1, required=True)
@_source
@_after
@options.limit
@options.listing
@options.database
def search(words: tuple[str, ...], *, as_json: bool, database: str | None, **wanted: Any) -> None:
    """Find pages that have all WORDS; `word*` is any word that begins so."""
    with operating(database) as operator:
        found = operator.pages.search_sync(" ".join(words), **wanted)
    _say(found, as_json=as_json)


@pages.command()
@click.argument("page_id", metavar="ID", type=click.IntRange(1))
@options.as_json
@options.database
def show(page_id: int, *, as_json: bool, database: str | None) -> None:
    """Show a page with all of its text."""
    with operating(database) as operator:
        found = plain(operator.pages.get_sync(page_id))
    say_in: Callable[[Any], None] = say_json if as_json else say_fields
    say_in(found)


@pages.command()
@click.argument("source_id", metavar="SOURCE")
@options.database
def delete(source_id: str, *, database: str | None) -> None:
    """Delete all pages of a source; its next crawl finds them again."""
    with operating(database) as operator:
        gone = operator.pages.delete_sync(source_id)
    say(f"{gone} pages of {source_id} are deleted")


def _say(found: Sequence[WebPage], *, as_json: bool) -> None:
    say_rows("pages", found, _COLUMNS, as_json=as_json)
