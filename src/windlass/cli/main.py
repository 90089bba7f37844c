"""`windlass`: every command and what it answers when something is wrong."""

from __future__ import annotations

import errno
import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from windlass import __version__
from windlass.cli.exit_codes import BAD_USAGE, REFUSED
from windlass.core.job_verbs import JOB_VERBS
from windlass.errors import (
    CannotConnect,
    ConfigError,
    ExecutionNotFound,
    InvalidInput,
    JobNotFound,
    LetterNotFound,
    SchemaError,
    StoreUnavailable,
    UnknownTask,
    WindlassError,
    nearest,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Where each command is and what it does: a command is loaded when it is called, and help loads none.
COMMANDS: dict[str, tuple[str, str]] = {
    "alerts": ("windlass.cli.alerts:alerts", "List what is wrong, worst first, and silence it."),
    "boost": ("windlass.cli.job_verbs:boost", "Raise the priority of jobs."),
    "breakers": ("windlass.cli.breakers:breakers", "List, reset and open the circuit breakers."),
    "bury": ("windlass.cli.job_verbs:bury", "Fail waiting jobs for good."),
    "chores": ("windlass.cli.upkeep:chores", "List, pause and resume the chores of the upkeep."),
    "clone": ("windlass.cli.job_verbs:clone", "Make new jobs from finished ones."),
    "completion": ("windlass.cli.completion:completion", "Print what a shell needs to complete commands and names."),
    "convert-cron": (
        "windlass.cli.convert_cron:convert_cron",
        "Turn cron expressions that are plain intervals into intervals, and back.",
    ),
    "dead": ("windlass.cli.dead:dead", "List, read, acknowledge and requeue dead letters."),
    "doctor": ("windlass.cli.doctor:doctor", "Examine the database, the fleet and the settings."),
    "drain": ("windlass.cli.gates:drain", "Pause every lane and wait until nothing runs."),
    "edit": ("windlass.cli.job_verbs:edit", "Change a job that is not over."),
    "enqueue": ("windlass.cli.enqueue:enqueue", "Enqueue a job of a task."),
    "explain": ("windlass.cli.explain:explain", "Explain why a job, a lane or a task does or does not move."),
    "export": ("windlass.cli.export:export", "Write everything, or some jobs, as lines of JSON."),
    "fail": ("windlass.cli.job_verbs:fail", "End runs as failed, by their retry policy or for good."),
    "feeds": ("windlass.cli.feeds:feeds", "List and read feeds, subscribe to them and unsubscribe."),
    "import": ("windlass.cli.imports:import_", "Make schedules of those of other systems; read what was exported."),
    "init": ("windlass.cli.init:init", "Write a small project that runs."),
    "items": ("windlass.cli.items:items", "List and export what workers have found."),
    "job": ("windlass.cli.jobs:job", "Show a job with its newest runs."),
    "jobs": ("windlass.cli.jobs:jobs", "List jobs, newest first."),
    "lanes": ("windlass.cli.lanes:lanes", "List, pause, resume and drain lanes."),
    "logs": ("windlass.cli.logs:logs", "Print what a job's runs have logged."),
    "migrate": ("windlass.cli.migrate:migrate", "Bring the database's schema up to date."),
    "move": ("windlass.cli.move:move_", "Copy everything from one database into another, empty one."),
    "pages": ("windlass.cli.pages:pages", "Search, show and delete what crawls have found."),
    "remote": ("windlass.cli.remote:remote", "Run the jobs of an application for a server, over HTTP."),
    "scale": ("windlass.cli.scale:scale", "Print how many workers a lane wants."),
    "schedules": ("windlass.cli.schedules:schedules", "List and show recurring jobs; disable what is declared no more."),
    "serve": ("windlass.cli.serve:serve", "Serve the HTTP API until stopped."),
    "settings": ("windlass.cli.settings:settings", "List, read, set and unset what may change while everything runs."),
    "shell": ("windlass.cli.shell:shell", "Try things out in Python, with an application at hand."),
    "sources": ("windlass.cli.sources:sources", "List, keep and delete what `crawl` crawls."),
    "stats": ("windlass.cli.stats:stats", "Show the queue's statistics, by lane and by task."),
    "tail": ("windlass.cli.tail:tail", "Print what happens to jobs, as it happens."),
    "take-lease": ("windlass.cli.job_verbs:take_lease", "End leases as if they had not been renewed."),
    "tasks": ("windlass.cli.tasks:tasks", "List, pause, resume and drain the tasks of the fleet."),
    "token": ("windlass.cli.token:token", "Make, list and revoke the tokens of programs."),
    "top": ("windlass.cli.top:top", "Watch lanes, tasks, workers and jobs, live."),
    "trace": ("windlass.cli.trace:trace", "Show all jobs of one correlation id as a tree with their times."),
    "up": ("windlass.cli.up:up", "Run everything in one process: server, worker and upkeep."),
    "upkeep": ("windlass.cli.upkeep:upkeep", "Keep the queue moving without running jobs."),
    "views": ("windlass.cli.views:views", "Make or drop SQL views of jobs, runs, dead letters and breakers."),
    "worker": ("windlass.cli.worker:worker", "Run the jobs of an application until stopped."),
    "workers": ("windlass.cli.workers:workers", "List the processes that run jobs; let them claim or not."),
}
# Of what it does to many jobs, the part before the details.
COMMANDS |= {
    name.replace("_", "-"): (f"windlass.cli.job_verbs:{name}", f"{verb.many.rstrip('.').partition(';')[0]}.")
    for name, verb in JOB_VERBS.items()
    if verb.many is not None
}
_LISTED = {
    JobNotFound: "; a job is named by its number or UUID, and `windlass jobs` lists them",
    LetterNotFound: "; `windlass dead` lists those there are",
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
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without loading any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only while completing

        found = [CompletionItem(name, help=COMMANDS[name][1]) for name in sorted(COMMANDS) if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

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
            from windlass.cli.output import complain  # noqa: PLC0415 - the help text needs none of it

            complain(f"{error}{_remedy(error)}")
            sys.exit(_exit_code(error))


def _only(error: BaseException) -> BaseException:
    """Return the one error in a group: task groups wrap what ends them, also those of an application's lifespan."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _remedy(error: WindlassError) -> str:
    """Return what to type where the message of an error, which programs read as well, does not name it."""
    if isinstance(error, StoreUnavailable):
        # Why there was no connection is a better answer than a guess.
        return "" if isinstance(error, CannotConnect) else "; is the database running, and is its URL right?"
    if isinstance(error, ExecutionNotFound):
        return f"; `windlass job {error.job_id}` lists those that are kept"
    return _LISTED.get(type(error), "")


def _exit_code(error: WindlassError) -> int:
    # A worker that declares the task may start at any time.
    is_usage = isinstance(error, ConfigError | SchemaError | InvalidInput) and not isinstance(error, UnknownTask)
    return BAD_USAGE if is_usage else REFUSED


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="windlass %(version)s")
def main() -> None:
    """Run and watch the jobs that live in your database."""
