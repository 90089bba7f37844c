"""Windlass as an extension of Flask: `app.extensions["windlass"]`, an application context for each run, `flask windlass`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import click
from flask import Flask
from flask.cli import ScriptInfo

from windlass.app import Windlass
from windlass.cli.project import with_target
from windlass.config import check_settings
from windlass.errors import ConfigError
from windlass.worker.middleware import HandlerCall

if TYPE_CHECKING:
    jobs: Windlass

_KEY = "windlass"
_TARGET = "windlass.flask:jobs"
"""Names the jobs of whatever application `FLASK_APP` names, in every process that a command starts."""


class FlaskWindlass:
    """Ties jobs to a Flask application: each run has its application context, `flask windlass` its command line."""

    def __init__(self, jobs: Windlass, web: Flask | None = None) -> None:
        """Tie `jobs` to `web` now, or to what `init_app` gets later."""
        self.jobs = jobs
        self._web: Flask | None = None
        jobs.middleware(self._in_context)
        if web is not None:
            self.init_app(web)

    def init_app(self, web: Flask) -> None:
        """Take settings from WINDLASS_… of the application's configuration, and add the command.

        Raises ConfigError for what is no setting.
        """
        if settings := web.config.get_namespace("WINDLASS_"):
            check_settings(settings)
            self.jobs.configure(**settings)
        self._web = web
        web.extensions[_KEY] = self.jobs
        web.cli.add_command(_command)

    def _in_context(self, call: HandlerCall) -> Iterator[None]:
        if self._web is None:
            raise ConfigError(f"task {call.context.task!r} has no Flask application: run `flask windlass worker`")
        with self._web.app_context():
            yield


@click.command(_KEY, add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def _command(ctx: click.Context, arguments: tuple[str, ...]) -> NoReturn:
    """Run a command of Windlass for this application."""
    info = ctx.ensure_object(ScriptInfo)
    if info.app_import_path is not None:
        os.environ["FLASK_APP"] = info.app_import_path
    elif info.create_app is not None:
        raise click.UsageError("name the application with --app or FLASK_APP: other processes have to find it too")
    os.environ["WINDLASS_DATABASE_URL"] = _jobs_of(info.load_app()).settings.database_url
    typed = [sys.executable, "-m", "windlass", *with_target(arguments, _TARGET)]
    sys.stdout.flush()
    os.execv(sys.executable, typed)  # noqa: S606 - the same program, as the user has typed it


def _jobs_of(web: Flask) -> Windlass:
    found = web.extensions.get(_KEY)
    if not isinstance(found, Windlass):
        raise ConfigError("the Flask application has no jobs: make FlaskWindlass(jobs, app) or call init_app(app)")
    return found


def __getattr__(name: str) -> Any:
    if name == "jobs":
        return _jobs_of(ScriptInfo(app_import_path=os.environ.get("FLASK_APP")).load_app())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
