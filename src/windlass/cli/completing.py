"""Names for the shell to complete: from the database, within a moment, and none where it cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from windlass.client.operations import Operator

Complete = Callable[[click.Context, click.Parameter, str], list[str]]
_WITHIN_S = 1.5
_MOST = 500


def _from_database(find: Callable[[Operator], Iterable[str | None]]) -> Complete:
    """Complete by names that `find` reads."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        found = _within(_reading(ctx.params.get("database"), find))
        return sorted({name for name in found if name and name.startswith(incomplete)})[:_MOST]

    return complete


def _within(read: Callable[[], list[str | None]]) -> list[str | None]:
    """Wait a moment for an answer; a shell that hangs at a key press would be worse than no answer."""
    from threading import Thread  # noqa: PLC0415 - only while completing

    found: list[str | None] = []
    thread = Thread(target=lambda: found.extend(read()), daemon=True)
    thread.start()
    thread.join(_WITHIN_S)
    return list(found)


def _reading(database: str | None, find: Callable[[Operator], Iterable[str | None]]) -> Callable[[], list[str | None]]:
    """Load all that is needed to read names, so that the time of a busy machine goes to the database alone."""
    import logging  # noqa: PLC0415 - only while completing

    from windlass.app import Windlass  # noqa: PLC0415 - only while completing
    from windlass.cli.session import operating  # noqa: PLC0415 - only while completing

    # A log line would be written into the line that is being typed.
    logging.disable()

    def read() -> list[str | None]:
        with suppress(Exception), operating(None, app) as operator:
            return list(find(operator))
        return []

    # What is wrong with the settings or the database is answered with no names: a completion has no place for an error.
    with suppress(Exception):
        app = Windlass(database)
        import_module(f"windlass.store.{'sqlite' if app.settings.database_url.startswith('sqlite:') else 'postgres'}")
        return read
    return list


def _tasks(operator: Operator) -> Iterable[str]:
    return [*(one.name for one in operator.known_tasks.list_sync(limit=_MOST)), *(one.task for one in _counts(operator))]


def _lanes(operator: Operator) -> Iterable[str]:
    return [*(one.name for one in operator.lanes.list_sync()), *(one.lane for one in _counts(operator))]


def _counts(operator: Operator) -> Any:
    from windlass.core.blocking import run  # noqa: PLC0415 - only while completing

    return run(run(operator.store()).count_jobs())


def _schedules(operator: Operator) -> Iterable[str | None]:
    from windlass.core.filter import JobFilter  # noqa: PLC0415 - only while completing
    from windlass.core.page import JobQuery  # noqa: PLC0415 - only while completing

    return (one.name for one in operator.list_sync(JobQuery(filter=JobFilter(is_recurring=True), limit=_MOST)).jobs)


def _breakers(operator: Operator) -> Iterable[str | None]:
    breaking = (one.breaker for one in operator.known_tasks.list_sync(limit=_MOST))
    return [*(one.name for one in operator.breakers.list_sync(limit=_MOST)), *breaking]


def _workers(operator: Operator) -> Iterable[str | None]:
    return (one.id for one in operator.workers.list_sync(limit=_MOST) if one.is_online)


def arguments(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of a task's arguments, and behind `name=` the values that it may have where they are few."""
    # The option that is being typed has no value yet, so click has not read the arguments before it.
    task = ctx.params.get("task") or next(iter(ctx.args), None)
    given = {one.partition("=")[0] for one in ctx.params.get("arguments") or ()}
    target = ctx.params.get("target")
    if target is None:
        found = _within(_reading(ctx.params.get("database"), lambda operator: _choices(_declared_schema(operator, task), given)))
    else:
        found = list(_choices(_schema_of_code(target, task), given))
    # Names first, and values once there is a name.
    wanted = (one for one in found if one is not None and one.endswith("=") == ("=" not in incomplete))
    return [choice for choice in wanted if choice.startswith(incomplete)]


def _declared_schema(operator: Operator, task: str | None) -> Mapping[str, Any] | None:
    known = next((one for one in operator.known_tasks.list_sync(limit=_MOST) if one.name == task), None)
    return None if known is None else known.declared().schema


def _schema_of_code(target: str, task: str | None) -> Mapping[str, Any] | None:
    """Read the arguments from an application's code; what its import writes or raises has no place on the line that is typed."""
    from contextlib import redirect_stderr, redirect_stdout  # noqa: PLC0415 - only while completing
    from io import StringIO  # noqa: PLC0415 - only while completing

    from windlass.cli.target import load_app  # noqa: PLC0415 - only while completing

    with suppress(Exception, SystemExit), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        found = load_app(target).tasks.get(task or "")
        return None if found is None else found.arguments.schema()
    return None


def _choices(schema: Mapping[str, Any] | None, given: set[str]) -> Iterable[str]:
    for name, described in ((schema or {}).get("properties") or {}).items():
        if name not in given:
            yield f"{name}="
            for value in (True, False) if described.get("type") == "boolean" else described.get("enum") or ():
                yield f"{name}={value if isinstance(value, str) else json.dumps(value)}"


tasks = _from_database(_tasks)
lanes = _from_database(_lanes)
schedules = _from_database(_schedules)
breakers = _from_database(_breakers)
workers = _from_database(_workers)


def states(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the last of several states with commas between."""
    from windlass.core.job import JobState  # noqa: PLC0415 - only while completing

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{state.value}" for state in JobState if state.value.startswith(last)]


def chores(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete a chore's name."""
    from windlass.core.chore import CHORES  # noqa: PLC0415 - only while completing

    return sorted(name for name in CHORES if name.startswith(incomplete))


def settings(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete a setting's name."""
    from windlass.core.settings import SETTINGS  # noqa: PLC0415 - only while completing

    return sorted(name for name in SETTINGS if name.startswith(incomplete.upper()))
