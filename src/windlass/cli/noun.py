"""Commands that are about one noun."""

from __future__ import annotations

import click

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
