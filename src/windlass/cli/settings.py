"""`windlass settings`."""

from __future__ import annotations

import os
from typing import Any

import click

from windlass.cli import completing, options
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say_either, say_json, say_table
from windlass.cli.session import operating, person
from windlass.client.operations import Operator
from windlass.core.settings import SETTINGS, Origin
from windlass.errors import InvalidInput, nearest

_COLUMNS = ("name", "value", "origin", "updated_by", "updated_at")


@click.group(cls=NounGroup)
def settings() -> None:
    """List, read, set and unset what may change while everything runs.

    What is set here overrides the environment, and the environment the default.
    """


@settings.command(name="list")
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None) -> None:
    """List every setting with its value and where the value comes from."""
    with operating(database) as operator:
        found = _read(operator)
    if as_json:
        say_json({"settings": plain(list(found.values())), "total": len(found)})
    else:
        say_table(found.values(), _COLUMNS)


@settings.command()
@click.argument("name", shell_complete=completing.settings)
@options.as_json
@options.database
def get(name: str, *, as_json: bool, database: str | None) -> None:
    """Print one setting."""
    _check(name)
    with operating(database) as operator:
        found = _read(operator)[name]
    if as_json:
        say_json(plain(found))
    else:
        click.echo(found["value"])


@settings.command(name="set")
@click.argument("name", shell_complete=completing.settings)
@click.argument("value")
@options.as_json
@options.database
def set_(name: str, value: str, *, as_json: bool, database: str | None) -> None:
    """Set a value; it holds from the next use on, in every process."""
    with operating(database) as operator:
        stored = operator.stored_settings.set_sync(name, value, person())
    say_either(stored, f"{name} is {stored.value}", as_json=as_json)


@settings.command()
@click.argument("name", shell_complete=completing.settings)
@options.as_json
@options.database
def unset(name: str, *, as_json: bool, database: str | None) -> None:
    """Take a value back, so that the environment or the default counts again."""
    _check(name)
    with operating(database) as operator:
        was_set = operator.stored_settings.unset_sync(name)
        now = _read(operator)[name]
    say_either(
        {**plain(now), "was_set": was_set},
        f"{name} is {now['value']} ({now['origin']})" + ("" if was_set else "; it was not set"),
        as_json=as_json,
    )


def _check(name: str) -> None:
    if name not in SETTINGS:
        raise InvalidInput("name", name, f"is not a setting; there are {', '.join(SETTINGS)}{nearest(name, SETTINGS)}")


def _read(operator: Operator) -> dict[str, dict[str, Any]]:
    stored = {row.name: row for row in operator.stored_settings.all_sync()}
    found = operator.stored_settings.effective_sync(os.environ)
    return {
        name: {
            "name": name,
            "value": one.value,
            "origin": one.origin,
            "updated_by": stored[name].updated_by if one.origin is Origin.DATABASE else None,
            "updated_at": stored[name].updated_at if one.origin is Origin.DATABASE else None,
        }
        for name, one in found.items()
    }
