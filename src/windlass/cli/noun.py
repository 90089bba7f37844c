"""Commands that are about one noun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from windlass.cli import options
from windlass.cli.output import say_rows
from windlass.cli.session import operating

_HELP = {"-h", "--help"}


class NounGroup(click.Group):
    """A group whose `list` need not be typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `windlass lanes --json` as `windlass lanes list --json`."""
        # The shell completes what may follow the noun: its verbs.
        if not args and ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] not in _HELP):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def add_list(
    group: click.Group, noun: str, columns: Sequence[str], *, by: str = "name", fields: Callable[[Any], Any] | None = None
) -> None:
    """Add the command that lists rows of a noun of an operator; `fields` makes what a program is shown of one."""

    @group.command(name="list", help=f"List {group.name} by {by}.")
    @click.option("--after", default="", metavar=by.upper(), help=f"Begin after this {by}.")
    @options.limit
    @options.listing
    @options.database
    def list_(*, after: str, limit: int, as_json: bool, database: str | None) -> None:
        with operating(database) as operator:
            found = getattr(operator, noun).list_sync(after=after, limit=limit)
        say_rows(str(group.name), found, columns, as_json=as_json, fields=fields)
