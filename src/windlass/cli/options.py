"""Options that many commands have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

import click

from windlass.cli import completing
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import JobState
from windlass.errors import InvalidInput, nearest

F = TypeVar("F", bound=Callable[..., Any])

database = click.option(
    "--database",
    "--database-url",
    "database",
    metavar="URL",
    help="sqlite:///path or postgresql://…; default: WINDLASS_DATABASE_URL, else windlass.toml.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
host = click.option("--host", help="Where to listen; default: WINDLASS_HOST, else 127.0.0.1.")
port = click.option("--port", type=click.IntRange(0, 65_535), help="Default: WINDLASS_PORT, else 8060; 0 is any free port.")
pools = click.option("--pools", help="Slots by lane, as in fast=3,*=5; * serves every lane but pull.")
packs = click.option(
    "--packs", metavar="NAMES", help="Ready-made tasks to run as well, as in crawl,notify; default: WINDLASS_PACKS, else none."
)
json_logs = click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
migrate = click.option("--migrate", is_flag=True, help="Bring the schema up to date first.")
limit = click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many at most.")

_FILTERS = (
    click.option(
        "--state",
        "states",
        multiple=True,
        metavar="STATE",
        help="As in failed, or pending,running; again for more.",
        shell_complete=completing.states,
    ),
    click.option("--task", "tasks", multiple=True, help="Again for more.", shell_complete=completing.tasks),
    click.option("--lane", "lanes", multiple=True, help="Again for more.", shell_complete=completing.lanes),
    click.option("--subject", "--source-id", "subject", help="What the jobs are about, such as a source's id."),
    click.option("--correlation-id", help="With a job's own UUID: the job and its children."),
    click.option("--search", metavar="TEXT", help="Found in task, name, subject, unique key, last error or payload."),
    click.option("--since", metavar="TIME", help="Created at this time or later, as in 2026-01-15T10:30Z."),
    click.option("--priority", type=int, help="As it is now."),
    click.option("--worker", metavar="ID", help="The worker that runs them now."),
    click.option("--error", metavar="TEXT", help="Found in the last error."),
)
_NAMES = ("states", "tasks", "lanes", "subject", "correlation_id", "search", "since", "priority", "worker", "error")


_watch = click.option(
    "--watch",
    is_flag=False,
    flag_value="2",
    metavar="[SECONDS]",
    help="Show it again every 2 seconds, or as often as given; Ctrl-C ends.",
)


def listing(command: F) -> F:
    """Add what every list has to a command: `--json` and `--watch`."""

    @wraps(command)
    def call(*arguments: Any, watch: str | None, **given: Any) -> Any:
        if watch is None:
            return command(*arguments, **given)
        from windlass.cli import watching  # noqa: PLC0415 - few commands are watched

        return watching.watch(lambda: command(*arguments, **given), watching.read_seconds(watch))

    return as_json(_watch(call))  # type: ignore[return-value]  # click's decorators give back what they were given


def log_level(default: str) -> Callable[[F], F]:
    """Add the option for the log level to a command."""
    return click.option("--log-level", default=default, show_default=True, help="debug, info, warning or error.")


def job_filters(command: F) -> F:
    """Add the filters of lists of jobs to a command, as one argument `wanted`."""

    @wraps(command)
    def call(**given: Any) -> Any:
        return command(wanted=read_filter(**{name: given.pop(name) for name in _NAMES}), **given)

    for option in reversed(_FILTERS):
        call = option(call)
    return call  # type: ignore[return-value]  # click's decorators give back what they were given


def read_filter(
    *, states: tuple[str, ...], tasks: tuple[str, ...], lanes: tuple[str, ...], since: str | None, **rest: Any
) -> JobFilter:
    """Make a filter of what was typed."""
    words = [word.strip() for given in states for word in given.split(",")]
    return JobFilter(
        states=tuple(StateFilter(_state(word)) for word in words),
        tasks=tasks,
        lanes=lanes,
        since=None if since is None else read_time("since", since),
        **rest,
    )


def _state(word: str) -> JobState:
    try:
        return JobState(word)
    except ValueError:
        raise InvalidInput("state", word, f"must be one of {', '.join(JobState)}{nearest(word, JobState)}") from None


def read_time(field: str, text: str) -> datetime:
    """Read an instant as people write it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(field, text, "must be a time such as 2026-01-15T10:30Z") from None
    if found.tzinfo is None:
        raise InvalidInput(field, text, "must carry a time zone, as in 2026-01-15T10:30Z")
    return found
