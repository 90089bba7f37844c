"""Keeps a worker running, anew whenever the project's code changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.utils.autoreload import iter_all_python_module_files

from windlass.cli.reloader import Reloader
from windlass.django.management.command_line import environment


def run_reloading(arguments: Sequence[str], pythonpath: str | None = None) -> NoReturn:
    """Run `windlass` with these arguments until a signal; ends the process with the exit code of the last worker."""
    folder = Path(getattr(settings, "BASE_DIR", None) or Path.cwd())

    def elsewhere() -> Iterable[Path]:
        # Of the project's own folder every file counts, also one that no process has imported yet.
        return (file for file in iter_all_python_module_files() if not file.is_relative_to(folder))

    command = [sys.executable, "-m", "windlass", *arguments]
    sys.exit(Reloader(command, folder, elsewhere=elsewhere, environ=environment(pythonpath)).run())
