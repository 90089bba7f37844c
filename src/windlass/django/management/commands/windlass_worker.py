"""`manage.py windlass_worker`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from windlass.django.backends import backend_called, loaded_app
from windlass.django.management import command_line
from windlass.django.management.reloading import run_reloading


class Command(BaseCommand):
    """Runs the tasks of the project until it is stopped."""

    help = "Run the tasks of the project. SIGTERM or Ctrl-C: finish what runs within the grace, give back the rest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the options of `windlass worker`."""
        parser.add_argument("--backend", help="which backend of TASKS; default: the first that is Windlass")
        parser.add_argument("--pools", help="how many tasks run at a time, as in `mail=2,*=8`")
        parser.add_argument("--processes", type=int, help="how many workers to keep running; default: 1")
        parser.add_argument("--process-per-pool", action="store_true", help="run each pool in a process of its own")
        parser.add_argument("--metrics-port", type=int, help="answer GET /metrics for Prometheus on this port")
        parser.add_argument("--metrics-host", help="where --metrics-port listens; default: 127.0.0.1")
        parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"])
        parser.add_argument("--json-logs", action="store_true", help="log one JSON object a line")
        parser.add_argument(
            "--reload",
            action="store_true",
            default=None,
            help="start anew when code changes; default: while DEBUG is on",
        )
        parser.add_argument("--noreload", action="store_false", dest="reload", help="do not")

    def handle(self, *_: Any, backend: str | None, reload: bool | None, **given: Any) -> None:
        """Check that the project has tasks, and become the worker."""
        names = ("pools", "processes", "process_per_pool", "metrics_port", "metrics_host", "log_level", "json_logs")
        typed = command_line.options_of(**{name: given[name] for name in names})
        is_reloading = settings.DEBUG if reload is None else reload
        try:
            alias = backend_called(backend).alias
            _load(alias, may_fail=is_reloading)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        arguments = ["worker", command_line.target_of(alias), *typed]
        if is_reloading:
            run_reloading(arguments, given["pythonpath"])
        command_line.run(*arguments, pythonpath=given["pythonpath"])


def _load(alias: str, *, may_fail: bool) -> None:
    """Load the project's tasks; where code may fail, the worker that loads the same shows why and waits for a change."""
    try:
        loaded_app(alias)
    except ImproperlyConfigured:
        raise
    except Exception:
        if not may_fail:
            raise
