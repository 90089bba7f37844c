"""`manage.py windlass`."""

from __future__ import annotations

import os
from argparse import REMAINDER, ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from windlass.cli.project import with_target
from windlass.django.backends import backend_called
from windlass.django.database import url_of
from windlass.django.management import command_line

# Django has acted on its own two of these before it comes here.
_BEFORE_THE_COMMAND = frozenset({"--backend", "--pythonpath", "--settings"})


class Command(BaseCommand):
    """Runs any command of Windlass on the database of the settings, with the tasks of the project."""

    help = "Run a command of Windlass on the project's database, as in `manage.py windlass jobs --state failed`."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own form

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take all that follows as it is."""
        parser.add_argument("--backend", help="which backend of TASKS; default: the first that is Windlass")
        parser.add_argument("arguments", nargs=REMAINDER, help="the command and its options; `--help` lists them")

    def run_from_argv(self, argv: list[str]) -> None:
        """Leave the options of the command to Windlass: Django would take --help and --version for its own."""
        try:
            options, arguments = _divided(argv[2:])
            self.execute_on(options.get("--backend"), arguments, options.get("--pythonpath"))
        except CommandError as error:
            self.stderr.write(f"{error.__class__.__name__}: {error}")
            raise SystemExit(error.returncode) from None

    def handle(self, *_: Any, backend: str | None, arguments: list[str], pythonpath: str | None = None, **__: Any) -> None:
        """Do the same for `call_command`."""
        self.execute_on(backend, arguments, pythonpath)

    @staticmethod
    def execute_on(alias: str | None, arguments: list[str], pythonpath: str | None = None) -> None:
        """Run the command on a backend's database; one that takes an application gets the backend's."""
        try:
            backend = backend_called(alias)
            os.environ["WINDLASS_DATABASE_URL"] = url_of(backend.database)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        typed = with_target(_with_defaults(arguments), command_line.target_of(backend.alias))
        command_line.run(*typed, pythonpath=pythonpath)


def _with_defaults(arguments: list[str]) -> list[str]:
    """Let imported schedules have the names that tasks of Django have, and those of Django-Q the project's time zone."""
    match arguments:
        case ["import", "django-q", *typed]:
            return ["import", "django-q", "--full-names", "--timezone", settings.TIME_ZONE, *typed]
        case ["import", "apscheduler" | "celery-beat" as system, *typed]:
            return ["import", system, "--full-names", *typed]
    return arguments


def _divided(typed: list[str]) -> tuple[dict[str, str], list[str]]:
    """Divide what was typed into the options before the command, and the command with its own."""
    options: dict[str, str] = {}
    rest = list(typed)
    while rest and rest[0].partition("=")[0] in _BEFORE_THE_COMMAND:
        name, equals, value = rest.pop(0).partition("=")
        if not equals and not rest:
            raise CommandError(f"{name} needs a value")
        options[name] = value if equals else rest.pop(0)
    return options, rest
