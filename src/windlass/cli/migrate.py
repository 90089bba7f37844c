"""`windlass migrate`."""

from __future__ import annotations

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.session import quiet_driver


@click.command()
@options.database
def migrate(database: str | None) -> None:
    """Bring the database's schema up to date."""
    app = Windlass(database)
    quiet_driver()
    app.migrate()
    click.echo(f"windlass: the schema is up to date ({app.settings.database_url.partition(':')[0]})")
