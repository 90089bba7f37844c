"""`windlass views`: the queue for people who ask in SQL."""

from __future__ import annotations

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.output import say


@click.group()
def views() -> None:
    """Make or drop SQL views of jobs, runs, dead letters and breakers."""


@views.command()
@options.database
def install(database: str | None) -> None:
    """Make the views; refused, with nothing made, where a name is taken by something that is not ours."""
    with Windlass(database) as app:
        app.check_schema()
        say(f"made the views {', '.join(app.install_views())}")


@views.command()
@options.database
def remove(database: str | None) -> None:
    """Drop the views that are ours."""
    dropped = Windlass(database).remove_views()
    say(f"dropped the views {', '.join(dropped)}" if dropped else "there are no views of ours")
