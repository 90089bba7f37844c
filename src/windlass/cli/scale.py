"""`windlass scale`."""

from __future__ import annotations

import click

from windlass.cli import completing, options
from windlass.cli.output import plain, say_json
from windlass.cli.session import operating
from windlass.core.durations import parse_duration
from windlass.core.pool import MAX_SLOTS


@click.command()
@click.argument("lane", shell_complete=completing.lanes)
@click.option(
    "--slots",
    type=click.IntRange(1, MAX_SLOTS),
    help="Slots of a worker for the lane; default: what workers that are online have.",
)
@click.option("--within", default="1m", show_default=True, help="In what time a backlog should be worked off.")
@options.listing
@options.database
def scale(lane: str, *, slots: int | None, within: str, as_json: bool, database: str | None) -> None:
    """Print how many workers a lane wants, or with '*' every lane but `pull`.

    The number stands alone on its line, for a script that starts and stops workers; --json has what it was worked out from.
    """
    length = parse_duration(within, field="within")
    with operating(database) as operator:
        found = operator.insights.scale_sync(lane, slots=slots, within=length)
    if as_json:
        say_json(plain(found))
    else:
        click.echo(found.workers)
