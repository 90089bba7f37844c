"""`windlass migrate`."""

from __future__ import annotations

import logging

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.progress import is_shown
from windlass.cli.session import quiet_driver


class _Steps(logging.Handler):
    """Prints which migration is being applied: on a large database one may take minutes."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"windlass: {record.getMessage()}", err=True)


def _show_steps() -> None:
    log = logging.getLogger("windlass.store.migrate")
    log.addHandler(_Steps())
    log.setLevel(logging.DEBUG)
    log.propagate = False


@click.command()
@options.database
def migrate(database: str | None) -> None:
    """Bring the database's schema up to date."""
    app = Windlass(database)
    quiet_driver()
    if is_shown():
        _show_steps()
    app.migrate()
    click.echo(f"windlass: the schema is up to date ({app.settings.database_url.partition(':')[0]})")
