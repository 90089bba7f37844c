"""`windlass pages`: what crawls have found."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.noun import Noun
from windlass.cli.output import plain, say, say_fields, say_json, say_table
from windlass.cli.session import operating

_COLUMNS = ("id", "source_id", "title", "url", "fetched_at")


@click.group(cls=Noun)
def pages() -> None:
    """Search, show and delete what crawls have found."""


@pages.command()
@click.argument("words", nargs=-1)
@click.option("--source-id", help="Only pages of this source.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="ID", help="Begin after this page.")
@options.limit
@options.as_json
@options.database
def search(words: tuple[str, ...], *, source_id: str | None, after: int, limit: int, as_json: bool, database: str | None) -> None:
    """Find pages that have all WORDS; without any, list them. `word*` is any word that begins so."""
    with operating(database) as operator:
        if words:
            found = operator.pages.search_sync(" ".join(words), source_id=source_id, after=after, limit=limit)
        else:
            found = operator.pages.list_sync(source_id=source_id, after=after, limit=limit)
    if as_json:
        say_json({"pages": [plain(one) for one in found]})
    else:
        say_table(({column: getattr(one, column) for column in _COLUMNS} for one in found), _COLUMNS)


@pages.command()
@click.argument("page_id", metavar="ID", type=click.IntRange(1))
@options.as_json
@options.database
def show(page_id: int, *, as_json: bool, database: str | None) -> None:
    """Show a page with all of its text."""
    with operating(database) as operator:
        found = plain(operator.pages.get_sync(page_id))
    if as_json:
        say_json(found)
    else:
        say_fields(found)


@pages.command()
@click.argument("source_id", metavar="SOURCE")
@options.database
def delete(source_id: str, *, database: str | None) -> None:
    """Forget all pages of a source; its next crawl finds them again."""
    with operating(database) as operator:
        gone = operator.pages.delete_sync(source_id)
    say(f"{gone} pages of {source_id} are deleted")
