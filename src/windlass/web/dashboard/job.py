"""One job: what it is, how its runs went, and what can be done about it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fastapi import Request, Response

from windlass.client.operations import Operator
from windlass.core.access import Role
from windlass.core.filter import JobFilter
from windlass.core.ids import job_uuid
from windlass.core.job import CLOSED, Execution, Job, JobState, RunStatus
from windlass.core.job_verbs import FAILED_BY_HAND
from windlass.core.page import JobQuery, Page
from windlass.core.transitions import MOVES
from windlass.errors import JobNotFound
from windlass.store.stored_jobs import StoredJobs
from windlass.web.dashboard.correlation import correlation_path
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.jobs import job_row
from windlass.web.dashboard.json_tree import ShownJson, pretty, shown_json
from windlass.web.dashboard.recurring import in_words
from windlass.web.dashboard.stack_trace import TracePiece, trace_pieces
from windlass.web.dashboard.time_line import Waterfall, run_lines, waterfall
from windlass.web.dashboard.times import short
from windlass.web.job_shape import AnswerRules, answer_rules
from windlass.web.jobs import JobId
from windlass.web.request_context import address_of, reader_of
from windlass.web.route import Route

_RUNS = 20
_LINES = 12
"""How many runs the time line has, the newest."""
_CHILDREN = 20
_ITEMS = 10
_MOST_COPIED = 20_000
"""How many characters a command to copy may have."""


class RunRow(NamedTuple):
    """A run as its fold shows it."""

    run: Execution
    result: ShownJson | None
    trace: Sequence[TracePiece]
    is_open: bool


def run_rows(runs: Sequence[Execution], rules: AnswerRules) -> list[RunRow]:
    """Lay out runs, the newest first, which is open while it runs and where it failed."""
    return [
        RunRow(
            run=run,
            result=None if run.result_json is None else shown_json(rules.hide(run.result)),
            trace=trace_pieces(run.stack_trace or ""),
            is_open=place == 0 and run.status in {RunStatus.RUNNING, RunStatus.FAILED},
        )
        for place, run in enumerate(runs)
    ]


class Progress(NamedTuple):
    """How far a job is."""

    done: int
    target: int | None
    message: str | None
    cursor: str | None
    seen_at: datetime | None
    left: str
    """How long it may take yet, if it goes on as fast as until now."""


def progress_of(job: Job, at: datetime) -> Progress | None:
    """Return how far a job is; None where it has not reported."""
    if not (job.progress_count or job.progress_message or job.target_count or job.last_cursor) or job.state in CLOSED:
        return None
    left = ""
    if job.state is JobState.RUNNING and job.started_at and job.target_count and 0 < job.progress_count < job.target_count:
        left = short((at - job.started_at) * ((job.target_count - job.progress_count) / job.progress_count))
    return Progress(job.progress_count, job.target_count, job.progress_message, job.last_cursor, job.last_progress_at, left)


class JobItems(NamedTuple):
    """The first items that a job found, and how many there are."""

    shown: list[str]
    total: int
    is_exact: bool


async def items_of(reader: Operator, job: Job, rules: AnswerRules) -> JobItems | None:
    """Read the first items of a job that has some."""
    if not job.result_count:
        return None
    found = await reader.items.list(job_id=job.id, limit=_ITEMS)
    count = await reader.items.count(job_id=job.id)
    return JobItems([json.dumps(rules.hide(item.data), ensure_ascii=False) for item in found], count.items, count.is_exact)


_BUTTONS = ("retry", "resume", "run_now", "pause", "stop", "boost", "set_priority", "edit", "bury", "cancel")
"""The verbs whose legality is a matter of states, the likeliest first."""


def verbs_for(job: Job) -> list[str]:
    """List the verbs that the job's state allows."""
    found = [verb for verb in _BUTTONS if MOVES[verb.replace("_", " ")].allows(job)]
    if job.state is JobState.RUNNING:
        found += ["fail", "take_lease"]
    elif job.state in CLOSED:
        found.append("clone")
    return found if job.token is not None else [*found, "delete"]


async def show_job(request: Request, id: JobId) -> Response:  # noqa: A002 - the path's name
    """Show a job."""
    reader, rules = reader_of(request), answer_rules(request)
    at = await now(request)
    try:
        job = await reader.get(id)
    except JobNotFound:
        return draw(request, "missing.html", at, here="/jobs", title="No such job", status=404, what=f"job {id}")
    runs = await reader.executions(job.id, limit=_RUNS)
    children = await reader.list(JobQuery(filter=JobFilter(parent_id=job.id), limit=_CHILDREN))
    payload = rules.hide(job.payload)
    return draw(
        request,
        "job.html",
        at,
        here="/jobs",
        title=f"Job {job.id}",
        job=job,
        row=job_row(job, at),
        progress=progress_of(job, at),
        lines=run_lines(runs[:_LINES], at),
        runs=run_rows(runs, rules),
        payload=shown_json(payload),
        payload_text=pretty(payload),
        metadata=shown_json(rules.hide(job.metadata)) if job.metadata_json else None,
        items=await items_of(reader, job, rules),
        family=await _family(reader, job, children),
        correlation=correlation_path(job.correlation_id or str(job_uuid(job.id))),
        has_more_children=children.next_cursor is not None,
        verbs=verbs_for(job),
        failed_by_hand=FAILED_BY_HAND,
        timeout="" if job.timeout_us is None else f"{job.timeout_us / 1_000_000:g}s",
        cadence=in_words(job),
        explained=await reader.explain(job.id),
        copies=_copies(job, payload, address_of(request)),
    )


async def _family(reader: Operator, job: Job, children: Page) -> Waterfall | None:
    """Draw a job with what came of it; a recurring job, which is older than all of that, is left out."""
    if not children.jobs:
        return None
    ids = [child.id for child in children.jobs]
    return waterfall(await StoredJobs(reader).trace_jobs(ids if job.cadence is not None else [job.id, *ids]))


def _copies(job: Job, payload: Any, base: str) -> list[tuple[str, str, str]]:
    """Write how another job like this one is enqueued; nothing where that would be too long to read."""
    text = json.dumps(payload, ensure_ascii=False)
    if len(text) > _MOST_COPIED:
        return []
    body = json.dumps({"task": job.task, "lane": job.lane, "payload": payload}, ensure_ascii=False)
    curl = (
        'curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n'
        f"     -d {shlex.quote(body)} {shlex.quote(f'{base}/api/v1/jobs')}"
    )
    command = f"windlass enqueue {shlex.quote(job.task)} {shlex.quote(text)} --lane {shlex.quote(job.lane)}"
    python = f"await app.enqueue({job.task!r}, {payload!r}, lane={job.lane!r})"
    return [("curl", "curl", curl), ("command", "Command line", command), ("python", "Python", python)]


ROUTES = (Route("GET", "/jobs/{id}", Role.VIEWER, show_job, is_page=True, is_costly=True),)
