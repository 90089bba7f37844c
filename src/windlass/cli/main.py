"""`windlass`: every command and what it answers when something is wrong."""

from __future__ import annotations

import sys
from typing import Any

import click

from windlass import __version__
from windlass.cli.migrate import migrate
from windlass.cli.serve import serve
from windlass.cli.supervisor import BAD_USAGE
from windlass.cli.token import token
from windlass.cli.worker import worker
from windlass.errors import ConfigError, SchemaError, WindlassError


class Commands(click.Group):
    """Turns our own errors into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command: 2 means that something has to be changed first, 1 that it may work another time."""
        try:
            return super().invoke(ctx)
        except WindlassError as error:
            click.echo(f"windlass: {error}", err=True)
            sys.exit(BAD_USAGE if isinstance(error, ConfigError | SchemaError) else 1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="windlass %(version)s")
def main() -> None:
    """Run and watch the jobs that live in your database."""


main.add_command(migrate)
main.add_command(serve)
main.add_command(token)
main.add_command(worker)
