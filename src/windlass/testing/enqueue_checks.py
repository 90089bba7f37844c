"""What a test expects of the jobs that were enqueued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from windlass.app import Windlass
from windlass.client.task import Task
from windlass.core.filter import JobFilter
from windlass.core.job import Job
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.core.payload import decode, encode
from windlass.errors import InvalidInput, InvalidPayload

AnyTask = Task[..., Any] | str

_MOST_SHOWN = 20
_MISSING: Any = object()


def enqueued(app: Windlass, task: AnyTask | None = None, /, **arguments: Any) -> list[Job]:
    """List the jobs that were enqueued, oldest first, whatever their state: all, of a task, or with these arguments.

    Other arguments of a job may have any value; those left out at enqueue have the function's defaults. Plain in async tests
    too: there is nothing to await, and so nothing that a test could forget to await.
    """
    known = _known(app, task)
    if known is not None:
        _check_names(known, arguments)
    return [job for job in _jobs(app, task) if _fits(job, known, arguments)]


def assert_enqueued(app: Windlass, task: AnyTask, /, **arguments: Any) -> Job:
    """Fail unless a job of this task with these arguments was enqueued; returns the first."""
    __tracebackhide__ = True
    found = enqueued(app, task, **arguments)
    if not found:
        raise AssertionError(f"{_wanted(task, arguments)} was not enqueued; {_told(app, task)}")
    return found[0]


def assert_not_enqueued(app: Windlass, task: AnyTask, /, **arguments: Any) -> None:
    """Fail if a job of this task with these arguments was enqueued."""
    __tracebackhide__ = True
    found = enqueued(app, task, **arguments)
    if found:
        raise AssertionError(f"{_wanted(task, arguments)} was enqueued:{_lines(found)}")


def _known(app: Windlass, task: AnyTask | None) -> Task[..., Any] | None:
    return app.tasks.get(task) if isinstance(task, str) else task


def _name(task: AnyTask) -> str:
    return task if isinstance(task, str) else task.name


def _jobs(app: Windlass, task: AnyTask | None) -> Iterator[Job]:
    wanted = JobFilter(tasks=() if task is None else (_name(task),))
    cursor: str | None = None
    while True:
        page = app.list_sync(JobQuery(filter=wanted, is_descending=False, limit=MAX_PAGE, cursor=cursor))
        yield from page.jobs
        cursor = page.next_cursor
        if cursor is None:
            return


def _check_names(task: Task[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse a name that no job can have: that it is not there would prove nothing."""
    names = task.arguments.names
    if task.arguments.is_open or task.arguments.is_model:
        return
    for name, value in arguments.items():
        if name not in names:
            raise InvalidInput(name, value, f"task {task.name!r} has no such argument; it has {', '.join(names) or 'none'}")


def _fits(job: Job, task: Task[..., Any] | None, arguments: Mapping[str, Any]) -> bool:
    if not arguments:
        return True
    plain = job.payload
    typed = _typed(job, task)
    return all(
        typed.get(name, _MISSING) == value or plain.get(name, _MISSING) == _as_json(value) for name, value in arguments.items()
    )


def _typed(job: Job, task: Task[..., Any] | None) -> Mapping[str, Any]:
    """Read the arguments as the function will get them."""
    if task is not None:
        try:
            return task.arguments.complete(task.arguments.decode(job.payload_json))
        except InvalidPayload:
            # Enqueued past the task's own check: its handler will refuse it too.
            pass
    return job.payload


def _as_json(value: Any) -> Any:
    try:
        return decode(encode(value))
    except InvalidPayload:
        return value


def _wanted(task: AnyTask, arguments: Mapping[str, Any]) -> str:
    return f"a job {_name(task)}({_listed(arguments)})"


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _told(app: Windlass, task: AnyTask) -> str:
    same = enqueued(app, task)
    if same:
        return f"of this task there are:{_lines(same)}"
    others = enqueued(app)
    return f"there are only:{_lines(others)}" if others else "there are no jobs at all"


def _lines(jobs: Iterable[Job]) -> str:
    lines = [f"  {job.task}({_listed(job.payload)})  job {job.id}, {job.state}" for job in jobs]
    if len(lines) > _MOST_SHOWN:
        lines[_MOST_SHOWN:] = [f"  … and {len(lines) - _MOST_SHOWN} more"]
    return "\n".join(["", *lines])
