"""`windlass feeds`: what is subscribed to, and what was found in it."""

from __future__ import annotations

import logging
from typing import Any

import click

from windlass.cli import options
from windlass.cli.noun import NounGroup
from windlass.cli.output import complain, plain, say_either, say_rows
from windlass.cli.session import operating
from windlass.client.operations import Operator
from windlass.core.feed import Feed
from windlass.store.nouns import NOT_FETCHED

_COLUMNS = ("id", "url", "title", "subscribers", "next_fetch_at", "consecutive_failures", "last_error")
_ENTRY_COLUMNS = ("id", "published_at", "title", "link")
_SECRETS = frozenset({"websub_token", "websub_secret"})


@click.group(cls=NounGroup)
def feeds() -> None:
    """List and read feeds, subscribe to them and unsubscribe."""


@feeds.command(name="list")
@click.option("--after", type=int, default=0, metavar="ID", help="Begin after this number.")
@click.option("--subscriber", help="Only what this one subscribes to.")
@options.limit
@options.listing
@options.database
def list_(*, after: int, subscriber: str | None, limit: int, as_json: bool, database: str | None) -> None:
    """List feeds by number."""
    with operating(database) as operator:
        found = operator.feeds.list_sync(after=after, limit=limit, subscriber=subscriber)
    say_rows("feeds", found, _COLUMNS, as_json=as_json, fields=_shown)


@feeds.command()
@click.argument("url")
@click.argument("subscriber")
@options.as_json
@options.database
def subscribe(url: str, subscriber: str, *, as_json: bool, database: str | None) -> None:
    """Subscribe to a feed; a worker with the pack `feeds` fetches it."""
    # Printed below, as everything that commands complain about.
    logging.getLogger("windlass.client.feeds").addHandler(logging.NullHandler())
    with operating(database) as operator:
        feed = operator.feeds.subscribe_sync(url, subscriber)
        if not operator.feeds.are_fetched_sync():
            complain(NOT_FETCHED)
    say_either(_shown(feed), f"{subscriber} subscribes to feed {feed.id}, {feed.url}", as_json=as_json)


@feeds.command()
@click.argument("feed")
@click.argument("subscriber")
@options.as_json
@options.database
def unsubscribe(feed: str, subscriber: str, *, as_json: bool, database: str | None) -> None:
    """End a subscription to FEED, a number or an address."""
    with operating(database) as operator:
        left = operator.feeds.unsubscribe_sync(_number_of(operator, feed), subscriber)
    say_either(
        _shown(left), f"{subscriber} does not subscribe to feed {left.id}; subscribers left: {left.subscribers}", as_json=as_json
    )


@feeds.command()
@click.argument("feed")
@click.option("--before", type=int, default=2**63 - 1, metavar="ID", help="Begin before this entry.", show_default=False)
@options.limit
@options.listing
@options.database
def entries(feed: str, *, before: int, limit: int, as_json: bool, database: str | None) -> None:
    """List what was found in FEED, a number or an address; what was found last comes first."""
    with operating(database) as operator:
        found = operator.feeds.entries_sync(_number_of(operator, feed), before=before, limit=limit)
    say_rows("entries", found, _ENTRY_COLUMNS, as_json=as_json)


def _number_of(operator: Operator, feed: str) -> int:
    return int(feed) if feed.isascii() and feed.isdecimal() else operator.feeds.find_sync(feed).id


def _shown(feed: Feed) -> dict[str, Any]:
    return {name: value for name, value in plain(feed).items() if name not in _SECRETS}
