"""Pausing, resuming and draining, for lanes and tasks alike."""

from __future__ import annotations

import time
from typing import Any

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.output import plain, say, say_json
from windlass.cli.session import operating
from windlass.core.durations import parse_duration

_LOOK_S = 0.5


def add_gates(group: click.Group, facet: str, noun: str) -> None:
    """Give a group the commands of gates."""
    for verb, state in (("pause", "paused"), ("resume", "open")):
        group.add_command(_switch(facet, noun, verb, state))
    group.add_command(_drain(facet, noun))


def _switch(facet: str, noun: str, verb: str, state: str) -> click.Command:
    @click.command(name=verb, help=f"{verb.capitalize()} a {noun}.")
    @click.argument("name")
    @options.as_json
    @options.database
    def command(name: str, *, as_json: bool, database: str | None) -> None:
        with operating(database) as operator:
            gate = getattr(getattr(operator, facet), f"{verb}_sync")(name)
        if as_json:
            say_json(plain(gate))
        else:
            say(f"{noun} {name} is {state}" + ("" if gate.is_changed else ", as it was before"))

    return command


def _drain(facet: str, noun: str) -> click.Command:
    @click.command(name="drain", help=f"Pause a {noun} and say what still runs in it; 1 while something does.")
    @click.argument("name")
    @click.option("--wait", metavar="DURATION", help="Wait up to so long until nothing runs.")
    @options.as_json
    @options.database
    def command(name: str, *, wait: str | None, as_json: bool, database: str | None) -> None:
        most = 0.0 if wait is None else parse_duration(wait, field="wait").total_seconds()
        with operating(database) as operator:
            drain = _drained(getattr(operator, facet), name, most)
        if as_json:
            say_json({**plain(drain), "is_done": drain.is_done})
        else:
            say(f"{noun} {name} is paused; {drain.running} still running")
        if not drain.is_done:
            raise click.exceptions.Exit(REFUSED)

    return command


def _drained(gates: Any, name: str, seconds: float) -> Any:
    until = time.monotonic() + seconds
    while not (drain := gates.drain_sync(name)).is_done and (left := until - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left))
    return drain
