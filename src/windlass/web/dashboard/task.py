"""One task: how much it runs, how well and how long, what its jobs get, and why they wait."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.durations import in_words
from windlass.core.job import JobState
from windlass.core.known_task import KnownTask, declared_breaker
from windlass.core.retry import RetrySpec
from windlass.errors import GateNotFound
from windlass.web.dashboard.charts import histogram
from windlass.web.dashboard.frame import draw
from windlass.web.dashboard.lanes import SHOWN
from windlass.web.dashboard.ranges import QUICK, chosen_range
from windlass.web.dashboard.run_charts import run_charts
from windlass.web.dashboard.trends import comparisons, read_range
from windlass.web.fields import PathName
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.web.templates import name_in_path

_GROUPS = 50
_SHOWN_GROUPS = 5
_SECONDS = frozenset({"timeout", "base", "cap"})


class Option(NamedTuple):
    """What jobs of the task get when their enqueuer does not set it."""

    name: str
    value: str


def options(task: KnownTask) -> list[Option]:
    """List what a process declared; what it left out has the default."""
    stored: dict[str, Any] = task.options
    for name in ("schema", "breaker"):
        stored.pop(name, None)
    if isinstance(spec := task.declared().fields.get("retry"), RetrySpec):
        stored["retry"] = _retry(spec)
    return [Option("lane", task.lane), *(Option(name, value) for name, value in _written(stored))]


def _retry(spec: RetrySpec) -> dict[str, Any]:
    spans = {name: value.total_seconds() for name, value in (("base", spec.base), ("cap", spec.cap)) if value is not None}
    return {"profile": spec.profile, **spans, **({} if spec.jitter is None else {"jitter": spec.jitter})}


def _written(stored: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(stored.items()):
        label = name.replace("_", " ")
        if isinstance(value, dict) and value:
            yield label, ", ".join(f"{key.replace('_', ' ')} {_value(key, one)}" for key, one in value.items())
        else:
            yield label, _value(name, value)


def _value(name: str, value: Any) -> str:
    if name in _SECONDS and isinstance(value, int | float) and not isinstance(value, bool):
        return in_words(timedelta(seconds=value))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def show_task(
    request: Request, name: PathName, range_: Annotated[str, Query(alias="range", max_length=40)] = "1h"
) -> Response:
    """Show one task."""
    reader = reader_of(request)
    summary = await reader.insights.summary()
    at = summary.present.at
    wanted = chosen_range(at, quick=range_)
    known = await reader.known_tasks.get(name)
    counts: Counter[JobState] = Counter()
    for one in summary.present.counts:
        if one.task == name:
            counts[one.state] += one.jobs
    if known is None and not counts:
        return draw(request, "missing.html", at, here="/tasks", title="No such task", status=404, what=f"task {name}")
    found = await read_range(reader, wanted, task=name)
    groups = await reader.letters.groups(is_open=True, limit=_GROUPS)
    try:
        explanation = await reader.known_tasks.explain(name)
    except GateNotFound:
        explanation = None
    return draw(
        request,
        "task.html",
        at,
        here="/tasks",
        title=name,
        task_name=name,
        url=f"/api/v1/tasks/{name_in_path(name)}",
        known=known,
        explanation=explanation,
        states=[(state.value, counts[state]) for state in SHOWN],
        flow=summary.tasks.get(name),
        wanted=wanted,
        runs=run_charts(found.points, wanted.step, found.whole),
        sums=comparisons(found.whole, wanted.length, None, wanted.length),
        histograms=[
            histogram("histogram-wait", "Waits", found.whole.waits),
            histogram("histogram-run", "Run times", found.whole.runs),
        ],
        groups=[one for one in groups.groups if one.task == name][:_SHOWN_GROUPS],
        options=[] if known is None else options(known),
        breaker=None if known is None or known.breaker is None else declared_breaker(known.breaker, known.options_json),
        schema="" if known is None else _schema(known),
        quick=[(one, f"/tasks/{name_in_path(name)}?{urlencode({'range': one})}") for one in QUICK],
    )


def _schema(task: KnownTask) -> str:
    schema = task.options.get("schema")
    return "" if schema is None else json.dumps(schema, ensure_ascii=False, indent=2)


ROUTES = (Route("GET", "/tasks/{name}", Role.VIEWER, show_task, is_page=True, is_costly=True),)
