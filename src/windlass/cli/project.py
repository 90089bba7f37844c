"""Runs commands for the application of a framework's project, which need not be typed there."""

from __future__ import annotations

from collections.abc import Sequence

import click

from windlass.cli.main import main


def with_target(arguments: Sequence[str], target: str) -> list[str]:
    """Name the project's application to a command that takes one, unless another was typed."""
    name, *rest = arguments or ("--help",)
    command = main.get_command(click.Context(main), name)
    found = None if command is None else _target_of(command)
    if command is None or found is None or _has(command, found, rest):
        return [name, *rest]
    return [name, *([] if isinstance(found, click.Argument) else found.opts), target, *rest]


def _target_of(command: click.Command) -> click.Parameter | None:
    """Return the parameter that names an application; `move` has a target too, which is a database."""
    named = (parameter for parameter in command.params if "MODULE:APP" in (parameter.metavar or ""))
    return next(named, None)


def _has(command: click.Command, parameter: click.Parameter, typed: Sequence[str]) -> bool:
    """Return whether the parameter was typed; a line that cannot be read is for the command to refuse."""
    context = click.Context(command, resilient_parsing=True)
    options, _, _ = command.make_parser(context).parse_args(list(typed))
    return isinstance(options.get(str(parameter.name)), str)
