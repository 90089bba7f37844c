"""Runs the command line of Windlass from `manage.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def target_of(alias: str) -> str:
    """Write a backend as the application that commands take, in every process that they start."""
    return f"windlass.django.application:{alias}"


def environment(pythonpath: str | None = None) -> dict[str, str]:
    """Return the environment of processes that must find what this one has found: the project and its settings.

    `pythonpath` is what `--pythonpath` was given.
    """
    # `manage.py` has its folder as the first place to look, after that of --pythonpath; children are `python -m windlass`.
    places = [*sys.path[: 1 if pythonpath is None else 2], os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in places if place)}


def run(*arguments: str, pythonpath: str | None = None) -> None:
    """Run a command in this process; it ends the process, with its exit code."""
    from windlass.__main__ import main  # noqa: PLC0415 - it is the whole command line

    os.environ.update(environment(pythonpath))
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
