"""`windlass token`: tokens of programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.output import say_table
from windlass.cli.session import person
from windlass.cli.terminal import is_terminal
from windlass.core.access import NewToken, Role, Token
from windlass.core.audit import Actor
from windlass.core.blocking import run
from windlass.core.durations import parse_duration
from windlass.store.nouns import Tokens


@click.group()
def token() -> None:
    """Make, list and revoke the tokens of programs."""


@token.command()
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True, help="What its holder may do.")
@click.option("--lane", "lanes", multiple=True, help="A lane that a worker may serve; again for more. Default: every lane.")
@click.option("--worker", metavar="ID", help="The id that a worker's leases carry. Default: NAME.")
@click.option("--expires", metavar="DURATION", help="As in 12h or 90d. Default: never.")
@options.as_json
@options.database
def new(
    name: str,
    *,
    role: str,
    lanes: tuple[str, ...],
    worker: str | None,
    expires: str | None,
    as_json: bool,
    database: str | None,
) -> None:
    """Make a token and show its secret, this once."""
    wanted = NewToken(
        name=name,
        role=Role(role),
        lanes=lanes or None,
        worker=worker,
        expires_in=None if expires is None else parse_duration(expires, field="expires"),
    )
    with Windlass(database) as app:
        minted = run(_tokens(app).mint(wanted))
    if as_json:
        click.echo(json.dumps({**_shown(minted.token), "secret": minted.secret}))
        return
    click.echo(minted.secret)
    click.echo(
        f"windlass: token {minted.token.id} ({name}, {role}); the secret is not kept, so it cannot be shown again", err=True
    )


@token.command(name="list")
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None) -> None:
    """List the tokens, without their secrets."""
    with Windlass(database) as app:
        found = _all(app)
    if as_json:
        click.echo(json.dumps({"tokens": [_shown(one) for one in found], "total": len(found)}))
        return
    if is_terminal():
        say_table(map(_row, found), ("id", "name", "role", "state", "last_used", "lanes"))
        return
    click.echo(f"{'id':>5}  {'name':<24} {'role':<9} {'state':<8} {'last used':<20} lanes")
    for one in found:
        state = _state(one)
        seen = "never" if one.seen_at is None else f"{one.seen_at:%Y-%m-%d %H:%M:%S}"
        click.echo(f"{one.id:>5}  {one.name:<24} {one.role.value:<9} {state:<8} {seen:<20} {','.join(one.lanes or ['*'])}")


def _row(one: Token) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "role": one.role,
        "state": _state(one),
        "last_used": one.seen_at,
        "lanes": ",".join(one.lanes or ["*"]),
    }


def _state(one: Token) -> str:
    return "live" if one.is_live else "revoked" if one.revoked_at else "expired"


@token.command()
@click.argument("token_id", metavar="ID", type=int)
@options.as_json
@options.database
def revoke(token_id: int, *, as_json: bool, database: str | None) -> None:
    """End a token, and every session it opened."""
    with Windlass(database) as app:
        revoked = run(_tokens(app).revoke(token_id))
    click.echo(json.dumps(_shown(revoked)) if as_json else f"windlass: token {revoked.id} ({revoked.name}) is revoked")


def _tokens(app: Windlass) -> Tokens:
    return run(app.blocking_store()).acting(Actor(person())).tokens


def _all(app: Windlass) -> list[Token]:
    tokens, found = _tokens(app), list[Token]()
    while page := run(tokens.list(after=found[-1].id if found else 0)):
        found += page
    return found


def _shown(one: Token) -> dict[str, Any]:
    fields = asdict(one)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in fields.items()}
