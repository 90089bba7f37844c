"""A command that runs in processes of its own, kept running by one that does nothing else."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import click

from windlass.cli import supervisor

F = TypeVar("F", bound=Callable[..., Any])
_PR_SET_PDEATHSIG = 1


def processes(command: F) -> F:
    """Add the options for the number of processes to a command."""
    command = click.option("--parent", type=int, hidden=True, help="The supervisor that started this process.")(command)
    command = click.option("--alone", is_flag=True, hidden=True, help="Work in this process; what the supervisor starts.")(
        command
    )
    return click.option(
        "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="How many workers to keep running."
    )(command)


def supervise(
    count: int,
    banner_text: str = "",
    *,
    grace: timedelta,
    without: str | None = None,
    each: Sequence[Sequence[str]] = ((),),
    does_more: bool = False,
) -> NoReturn:
    """Keep so many copies of this command running for each set of arguments, without a flag that was for the start.

    `banner_text` is printed once signals are caught: only then may the user press what it names. A process that `does_more`
    meanwhile stays as it is; any other makes room for one that is a third of its size.
    """
    name, *typed = [argument for argument in sys.argv[1:] if argument != without]
    # Before what was typed, where a `--` cannot make arguments of them.
    ours = [sys.executable, "-m", "windlass", name, "--alone", "--parent", str(os.getpid())]
    commands = [[*ours, *extra, *typed] for extra in each]
    if not does_more:
        supervisor.become(commands, count, grace, banner_text)
    sys.exit(supervisor.Supervisor([command for command in commands for _ in range(count)], grace).run(banner_text))


def die_with_parent(parent: int | None) -> None:
    """Stop in order when the supervisor is gone, where the system reports that; elsewhere its signal does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It may have died before this process could ask for a signal.
    if parent is not None and os.getppid() != parent:
        sys.exit(0)
