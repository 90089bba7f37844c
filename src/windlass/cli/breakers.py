"""`windlass breakers`."""

from __future__ import annotations

import click

from windlass.cli import completing, options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.noun import NounGroup, add_list
from windlass.cli.output import complain, say_either
from windlass.cli.session import operating
from windlass.errors import nearest

_COLUMNS = ("name", "state", "failures", "threshold", "open_for", "opened_at", "probe_at", "is_forced")


@click.group(cls=NounGroup)
def breakers() -> None:
    """List, reset and open the circuit breakers that ever left closed."""


add_list(breakers, "breakers", _COLUMNS)


@breakers.command()
@click.argument("name", shell_complete=completing.breakers)
@options.as_json
@options.database
def reset(name: str, *, as_json: bool, database: str | None) -> None:
    """Close a breaker, even while a run is trying it."""
    with operating(database) as operator:
        closed = operator.breakers.reset_sync(name)
        known = [] if closed is not None else [one.name for one in operator.breakers.list_sync()]
    if closed is None:
        complain(f"breaker {name!r} has never left closed{nearest(name, known)}; `windlass breakers` lists those that have")
        raise click.exceptions.Exit(REFUSED)
    say_either(closed, f"breaker {name} is {closed.state}", as_json=as_json)


@breakers.command(name="open")
@click.argument("name", shell_complete=completing.breakers)
@click.option("--for", "for_", metavar="DURATION", help="As in 10m. Default: until it is reset.")
@options.as_json
@options.database
def open_(name: str, *, for_: str | None, as_json: bool, database: str | None) -> None:
    """Open a breaker: its tasks are not claimed until it is reset, or tried again after a while."""
    with operating(database) as operator:
        opened = operator.breakers.force_open_sync(name, for_)
    say_either(
        opened,
        f"breaker {name} is {opened.state}" + ("" if for_ else "; close it with `windlass breakers reset`"),
        as_json=as_json,
    )
