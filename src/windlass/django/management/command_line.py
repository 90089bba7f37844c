"""Runs the command line of Windlass from `manage.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def environment() -> dict[str, str]:
    """Return the environment of processes that must find what this one has found: the project and its settings."""
    # `manage.py` has its folder as the first place to look; children are started as `python -m windlass`.
    path = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def run(*arguments: str) -> None:
    """Run a command in this process; it ends the process, with its exit code."""
    from windlass.__main__ import main  # noqa: PLC0415 - it is the whole command line

    os.environ.update(environment())
    # Commands that keep processes running start them with what was typed.
    sys.argv[:] = ["windlass", *arguments]
    main()


def options_of(**given: object) -> Sequence[str]:
    """Write options as one types them; those that were not given are left out."""
    typed: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            typed.append(option)
        elif value not in {None, False}:
            typed += [option, str(value)]
    return typed
