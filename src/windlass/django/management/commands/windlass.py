"""`manage.py windlass`."""

from __future__ import annotations

import os
from argparse import REMAINDER, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from windlass.django.backends import backend_called
from windlass.django.database import url_of
from windlass.django.management import command_line


class Command(BaseCommand):
    """Runs any command of Windlass on the database of the settings."""

    help = "Run a command of Windlass on the project's database, as in `manage.py windlass jobs --state failed`."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own form

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take all that follows as it is."""
        parser.add_argument("--backend", help="which backend of TASKS; default: the first that is Windlass")
        parser.add_argument("arguments", nargs=REMAINDER, help="the command and its options; `--help` lists them")

    def run_from_argv(self, argv: list[str]) -> None:
        """Leave the options of the command to Windlass: Django would take --help and --version for its own."""
        given = argv[2:]
        alias = None
        if given[:1] == ["--backend"] and len(given) > 1:
            alias, given = given[1], given[2:]
        self.execute_on(alias, given)

    def handle(self, *_: Any, backend: str | None, arguments: list[str], **__: Any) -> None:
        """Do the same for `call_command`."""
        self.execute_on(backend, arguments)

    @staticmethod
    def execute_on(alias: str | None, arguments: list[str]) -> None:
        """Run the command on a backend's database."""
        os.environ["WINDLASS_DATABASE_URL"] = url_of(backend_called(alias).database)
        command_line.run(*arguments)
