"""Pausing, resuming and draining, for lanes and tasks alike."""

from __future__ import annotations

import time
from typing import Any

import click

from windlass.cli import completing, options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.output import plain, say_either
from windlass.cli.progress import progress
from windlass.cli.session import operating
from windlass.core.durations import parse_duration
from windlass.core.gate import ALL_LANES, Gate

_LOOK_S = 0.5
_UNTIL_DONE = "until done"
_force = click.option("--force", is_flag=True, help="Also for a name that nothing has declared and that has no jobs.")
_every = click.option("--all", "is_all", is_flag=True, help="Every lane, also those that come later; the same as the name '*'.")
_wait = click.option(
    "--wait", is_flag=False, flag_value=_UNTIL_DONE, metavar="[DURATION]", help="Wait until nothing runs, or up to so long."
)


def add_gates(group: click.Group, nouns: str, noun: str) -> None:
    """Add the commands of gates to a group."""
    for verb in ("pause", "resume"):
        group.add_command(_switch(nouns, noun, verb))
    group.add_command(_drain(nouns, noun))


def _switch(nouns: str, noun: str, verb: str) -> click.Command:
    has_all = noun == "lane"

    @click.command(name=verb, help=f"{verb.capitalize()} a {noun}{', or every one with --all' if has_all else ''}.")
    @click.argument("name", required=not has_all, shell_complete=getattr(completing, f"{noun}s"))
    @_force
    @options.as_json
    @options.database
    def command(name: str | None, *, force: bool, as_json: bool, database: str | None, is_all: bool = False) -> None:
        chosen = _chosen(name, is_all=is_all)
        with operating(database) as operator:
            gates = getattr(operator, nouns)
            _check(gates, chosen, force=force)
            gate = getattr(gates, f"{verb}_sync")(chosen)
            kept = [one.name for one in gates.list_sync() if one.paused_at is not None] if has_all else []
        say_either(gate, _told(noun, gate, verb, kept), as_json=as_json)

    return _every(command) if has_all else command


def _told(noun: str, gate: Gate, verb: str, kept: list[str]) -> str:
    title = _title(noun, gate.name)
    before = "" if gate.is_changed else ", as it was before"
    if verb == "pause":
        return f"{title} is paused{before}"
    if gate.name != ALL_LANES and ALL_LANES in kept:
        return f"{title} is not paused on its own{before}, but every lane is; `windlass lanes resume --all` resumes them"
    rest = f"; paused on their own: {', '.join(kept)}" if gate.name == ALL_LANES and kept else ""
    return f"{title} is open{before}{rest}"


def _title(noun: str, name: str) -> str:
    return "every lane" if (noun, name) == ("lane", ALL_LANES) else f"{noun} {name}"


def _chosen(name: str | None, *, is_all: bool) -> str:
    if (name is None) is not is_all:
        raise click.UsageError("Give a name, or --all; not both.")
    return ALL_LANES if name is None else name


def _check(gates: Any, name: str, *, force: bool) -> None:
    if not force:
        gates.ensure_known_sync(name)


def _drain(nouns: str, noun: str) -> click.Command:
    has_all = noun == "lane"
    every = ", or every one with --all," if has_all else ""

    @click.command(name="drain", help=f"Pause a {noun}{every} and count what still runs in it; 1 while something does.")
    @click.argument("name", required=not has_all, shell_complete=getattr(completing, f"{noun}s"))
    @_wait
    @_force
    @options.as_json
    @options.database
    def command(name: str | None, *, database: str | None, is_all: bool = False, **given: Any) -> None:
        _pause_and_count(nouns, noun, _chosen(name, is_all=is_all), database, **given)

    return _every(command) if has_all else command


def _pause_and_count(
    nouns: str, noun: str, name: str, database: str | None, *, wait: str | None, force: bool, as_json: bool
) -> None:
    """Pause what a name stands for, wait as long as asked, and print what still runs."""
    with operating(database) as operator:
        gates = getattr(operator, nouns)
        _check(gates, name, force=force)
        drain = _drained(gates, name, _longest(wait))
    say_either(
        {**plain(drain), "is_done": drain.is_done},
        f"{_title(noun, name)} is paused; {drain.running} still running",
        as_json=as_json,
    )
    if not drain.is_done:
        raise click.exceptions.Exit(REFUSED)


def _longest(wait: str | None) -> float:
    if wait == _UNTIL_DONE:
        return float("inf")
    return 0.0 if wait is None else parse_duration(wait, field="wait").total_seconds()


def _drained(gates: Any, name: str, seconds: float) -> Any:
    until = time.monotonic() + seconds
    drain = first = gates.drain_sync(name)
    with progress("drain", lambda: int(first.running)) as step:
        while not drain.is_done and (left := until - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))
            drain = gates.drain_sync(name)
            step(max(0, first.running - drain.running))
    return drain


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Every lane is meant; it is needed.")
@_wait
@options.as_json
@options.database
def drain(*, is_all: bool, wait: str | None, as_json: bool, database: str | None) -> None:
    """Pause every lane, also those that come later, and count what still runs; 1 while something does.

    `windlass lanes resume --all` lets everything go on.
    """
    if not is_all:
        raise click.UsageError("Say --all to stop everything; `windlass lanes drain NAME` drains one lane.")
    _pause_and_count("lanes", "lane", ALL_LANES, database, wait=wait, force=True, as_json=as_json)
