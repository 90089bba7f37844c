"""`windlass`: every command and what it answers when something is wrong."""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from typing import Any

import click

from windlass import __version__
from windlass.cli.exit_codes import BAD_USAGE, REFUSED
from windlass.errors import (
    CannotConnect,
    ConfigError,
    InvalidInput,
    SchemaError,
    StoreUnavailable,
    UnknownTask,
    WindlassError,
    nearest,
)

# Where each command is and what it does: a command is loaded when it is called, and help loads none.
COMMANDS: dict[str, tuple[str, str]] = {
    "boost": ("windlass.cli.job_verbs:boost", "Raise the priority of jobs."),
    "breakers": ("windlass.cli.breakers:breakers", "List, reset and open the circuit breakers."),
    "bury": ("windlass.cli.job_verbs:bury", "Fail waiting jobs for good."),
    "cancel": ("windlass.cli.job_verbs:cancel", "Cancel jobs at once."),
    "chores": ("windlass.cli.upkeep:chores", "List, pause and resume the chores of the upkeep."),
    "clone": ("windlass.cli.job_verbs:clone", "Make new jobs from finished ones."),
    "convert-cron": (
        "windlass.cli.convert_cron:convert_cron",
        "Turn cron expressions that are plain intervals into intervals, and back.",
    ),
    "dead": ("windlass.cli.dead:dead", "List, read, acknowledge and requeue dead letters."),
    "drain": ("windlass.cli.gates:drain", "Pause every lane and wait until nothing runs."),
    "edit": ("windlass.cli.job_verbs:edit", "Change a job that is not over."),
    "enqueue": ("windlass.cli.enqueue:enqueue", "Enqueue a job of a task."),
    "fail": ("windlass.cli.job_verbs:fail", "End runs as failed, by their retry policy or for good."),
    "feeds": ("windlass.cli.feeds:feeds", "List and read feeds, subscribe to them and unsubscribe."),
    "import": ("windlass.cli.imports:import_", "Make schedules from a crontab."),
    "items": ("windlass.cli.items:items", "List and export what workers have found."),
    "job": ("windlass.cli.jobs:job", "Show a job with its newest runs."),
    "jobs": ("windlass.cli.jobs:jobs", "List jobs, newest first."),
    "lanes": ("windlass.cli.lanes:lanes", "List, pause, resume and drain lanes."),
    "migrate": ("windlass.cli.migrate:migrate", "Bring the database's schema up to date."),
    "pages": ("windlass.cli.pages:pages", "Search, show and delete what crawls have found."),
    "pause": ("windlass.cli.job_verbs:pause", "Hold waiting jobs until they are resumed."),
    "remote": ("windlass.cli.remote:remote", "Run the jobs of an application for a server, over HTTP."),
    "resume": ("windlass.cli.job_verbs:resume", "Let paused jobs go on."),
    "retry": ("windlass.cli.job_verbs:retry", "Give failed jobs a fresh start."),
    "run-now": ("windlass.cli.job_verbs:run_now", "Run waiting jobs now, running ones once more after their run."),
    "schedules": ("windlass.cli.schedules:schedules", "List and show recurring jobs; disable what is declared no more."),
    "serve": ("windlass.cli.serve:serve", "Serve the HTTP API until stopped."),
    "settings": ("windlass.cli.settings:settings", "List, read, set and unset what may change while everything runs."),
    "sources": ("windlass.cli.sources:sources", "List, keep and delete what `crawl` crawls."),
    "take-lease": ("windlass.cli.job_verbs:take_lease", "End leases as if they had not been renewed."),
    "tasks": ("windlass.cli.tasks:tasks", "List, pause, resume and drain the tasks of the fleet."),
    "token": ("windlass.cli.token:token", "Make, list and revoke the tokens of programs."),
    "up": ("windlass.cli.up:up", "Run everything in one process: server, worker and upkeep."),
    "upkeep": ("windlass.cli.upkeep:upkeep", "Keep the queue moving without running jobs."),
    "views": ("windlass.cli.views:views", "Make or drop SQL views of jobs, runs, dead letters and breakers."),
    "worker": ("windlass.cli.worker:worker", "Run the jobs of an application until stopped."),
    "workers": ("windlass.cli.workers:workers", "List the processes that run jobs."),
}
_EXHAUSTED = {
    errno.EMFILE: "this process may open no more files, raise `ulimit -n`",
    errno.ENFILE: "the system has no files left to open",
    errno.ENOMEM: "the system has no memory left",
}


class Commands(click.Group):
    """Loads commands when they are called, and turns our own errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command: 2 means that something has to be written otherwise, 1 that it was refused or not found."""
        try:
            return self._invoke(ctx)
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            # Written by what is loaded already: without files nothing can be imported, not even what shows other errors.
            sys.stderr.write(f"windlass: {_EXHAUSTED[error.errno]}: {error.__context__ or error}\n")
            sys.exit(REFUSED)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (WindlassError, BaseExceptionGroup) as raised:
            error = _only(raised)
            if isinstance(error, OSError):
                raise error from None
            if not isinstance(error, WindlassError):
                raise
            # Why there was no connection is a better answer than a guess.
            is_guessed = isinstance(error, StoreUnavailable) and not isinstance(error, CannotConnect)
            remedy = "; is the database running, and is its URL right?" if is_guessed else ""
            from windlass.cli.output import complain  # noqa: PLC0415 - the help text needs none of it

            complain(f"{error}{remedy}")
            sys.exit(_exit_code(error))


def _only(error: BaseException) -> BaseException:
    """Return the one error in a group: task groups wrap what ends them, also those of an application's lifespan."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _exit_code(error: WindlassError) -> int:
    # A worker that declares the task may start at any time.
    is_usage = isinstance(error, ConfigError | SchemaError | InvalidInput) and not isinstance(error, UnknownTask)
    return BAD_USAGE if is_usage else REFUSED


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="windlass %(version)s")
def main() -> None:
    """Run and watch the jobs that live in your database."""
