"""`windlass completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_WINDLASS_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options and names of tasks, lanes, schedules and breakers.

    bash: windlass completion bash > ~/.local/share/bash-completion/completions/windlass
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"this version of click knows no {shell}; update click")
    click.echo(made(ctx.find_root().command, {}, "windlass", _VARIABLE).source())
