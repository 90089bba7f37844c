"""Enqueues and runs as an OpenTelemetry backend sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from tests.support.raw import execute
from tests.tracing.recorded import Recorded, traceparent
from tests.tracing.traced_app import app as code
from tests.tracing.traced_app import fails, fails_at_first, in_loop, in_thread, parent, parent_apart
from windlass import DuplicateJob, Enqueued, JobFailed, JobState, Windlass
from windlass.core.ids import job_uuid

TARGET = "tests.tracing.traced_app:app"
CALLER = "caller"


@pytest.fixture
async def app(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Windlass]:
    """Run the traced application on a fresh database, with its worker."""
    # Child processes read it where they start.
    monkeypatch.setenv("WINDLASS_DATABASE_URL", url)
    with code.bound(url, around=lambda backend: backend):
        async with code, code.working(target=TARGET):
            yield code


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def done(app: Windlass, job: Enqueued) -> Any:
    return await app.wait(job, timeout=30)


def check_run(run: ReadableSpan, sent: ReadableSpan) -> None:
    """Check that a run is linked to its enqueue, and in a trace of its own."""
    assert run.kind is SpanKind.CONSUMER
    assert run.parent is None
    assert run.context is not None
    assert sent.context is not None
    assert run.context.trace_id != sent.context.trace_id
    assert [traceparent(link.context) for link in run.links] == [traceparent(sent.context)]


@pytest.mark.parametrize("task", ["in_loop", "in_thread", "in_process", "in_process_loop"])
async def test_a_run_is_a_span_linked_to_its_enqueue_and_current_in_the_handler(
    app: Windlass, recorded: Recorded, task: str
) -> None:
    job = await app.enqueue(task, lane="mail", correlation_id="order 7")
    found = await done(app, job)
    [sent] = await recorded.ended("send mail", 1)
    [run] = await recorded.ended(f"process {task}", 1)
    assert sent.kind is SpanKind.PRODUCER
    check_run(run, sent)
    assert facts(sent) == {
        "messaging.system": "windlass",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(job.id),
        "messaging.message.conversation_id": "order 7",
        "windlass.task": task,
    }
    worker = facts(run).pop("messaging.client.id")
    assert worker == (await app.executions(job))[0].worker
    assert facts(run) == {
        "messaging.system": "windlass",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(job.id),
        "messaging.message.conversation_id": "order 7",
        "messaging.client.id": worker,
        "windlass.task": task,
        "windlass.attempt": 1,
        "windlass.run.status": "completed",
        **({"windlass.job.state": "completed"} if "process" in task else {}),
    }
    assert run.context is not None
    trace_id, span_id = f"{run.context.trace_id:032x}", f"{run.context.span_id:016x}"
    assert (found["trace_id"], found["span_id"], found["inside"]) == (trace_id, span_id, [trace_id, span_id])
    assert (found["logged"]["trace_id"], found["logged"]["correlation_id"]) == (trace_id, "order 7")
    assert (await app.get(job)).traceparent == traceparent(sent.context)


async def test_a_job_without_a_correlation_id_has_its_own_uuid_as_conversation(app: Windlass, recorded: Recorded) -> None:
    job = await in_loop.enqueue()
    await done(app, job)
    spans = [*await recorded.ended("send default", 1), *await recorded.ended("process in_loop", 1)]
    assert {facts(span)["messaging.message.conversation_id"] for span in spans} == {str(job_uuid(job.id))}


@pytest.mark.parametrize("task", [in_loop, in_thread], ids=lambda task: task.name)
async def test_a_batch_is_one_span_that_every_run_is_linked_to(app: Windlass, recorded: Recorded, task: Any) -> None:
    jobs = await task.enqueue_many([{}] * 5)
    for job in jobs:
        await done(app, job)
    [sent] = recorded.spans("send default")
    runs = await recorded.ended(f"process {task.name}", 5)
    assert facts(sent)["messaging.batch.message_count"] == 5
    assert "messaging.message.id" not in facts(sent)
    for run in runs:
        check_run(run, sent)
    assert {facts(run)["messaging.message.id"] for run in runs} == {str(job.id) for job in jobs}
    for run in runs:
        assert run.start_time is not None
        assert run.end_time is not None
        assert run.start_time <= run.end_time


async def test_a_batch_over_several_lanes_names_none(app: Windlass, recorded: Recorded) -> None:
    jobs = [in_loop.job(), in_loop.using(lane="other").job()]
    await app.enqueue_jobs(jobs)
    [sent] = recorded.spans("send")
    assert "messaging.destination.name" not in facts(sent)
    assert [job.traceparent for job in jobs] == [None, None]
    await recorded.ended("process in_loop", 2)
    assert await app.enqueue_jobs([]) == []


async def test_blocking_code_is_traced_too(app: Windlass, recorded: Recorded) -> None:
    job = await asyncio.to_thread(in_thread.enqueue_sync)
    many = await asyncio.to_thread(in_thread.enqueue_many_sync, [{}, {}])
    for one in (job, *many):
        await done(app, one)
    sent, batch = recorded.spans("send default")
    links = [traceparent(run.links[0].context) for run in await recorded.ended("process in_thread", 3)]
    assert sorted(links) == sorted([traceparent(sent.context), *[traceparent(batch.context)] * 2])


async def test_an_enqueue_belongs_to_the_span_of_its_caller(app: Windlass, recorded: Recorded) -> None:
    with trace.get_tracer("test").start_as_current_span(CALLER):
        job = await in_loop.enqueue()
    await done(app, job)
    [caller], [sent] = recorded.spans(CALLER), recorded.spans("send default")
    assert traceparent(sent.parent) == traceparent(caller.context)


@pytest.mark.parametrize("task", [parent, parent_apart], ids=lambda task: task.name)
async def test_a_handlers_enqueue_belongs_to_its_run(app: Windlass, recorded: Recorded, task: Any) -> None:
    await done(app, await task.enqueue())
    [run] = await recorded.ended(f"process {task.name}", 1)
    [child] = await recorded.ended("process in_loop", 1)
    assert run.context is not None
    # In a child process nobody records the enqueue here, and the run is linked to it all the same.
    [link] = child.links
    assert link.context.trace_id == run.context.trace_id
    if task is parent:
        sent = next(span for span in recorded.spans("send default") if span.parent is not None)
        assert traceparent(sent.parent) == traceparent(run.context)
        check_run(child, sent)


async def test_each_try_is_a_span_and_a_failed_one_says_why(app: Windlass, recorded: Recorded) -> None:
    await done(app, await fails_at_first.enqueue())
    [sent] = recorded.spans("send default")
    first, second = await recorded.ended("process fails_at_first", 2)
    for run in (first, second):
        check_run(run, sent)
    assert (facts(first)["windlass.attempt"], facts(second)["windlass.attempt"]) == (1, 2)
    assert facts(first)["error.type"] == "ValueError"
    assert (facts(first)["windlass.run.status"], facts(first)["windlass.run.reason"]) == ("failed", "error")
    assert facts(first)["windlass.job.state"] == "scheduled"
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError: not yet")
    [event] = first.events
    assert event.name == "exception"
    assert event.attributes is not None
    assert event.attributes["exception.type"] == "ValueError"
    assert 'raise ValueError("not yet")' in str(event.attributes["exception.stacktrace"])
    assert "error.type" not in facts(second)
    assert second.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("task", "kind", "reason"),
    [("fails", "LookupError", "error"), ("sleeps", "TimedOut", "timed_out"), ("dies", "SystemExit", "error")],
)
async def test_a_run_that_fails_for_good_has_an_error(
    app: Windlass, recorded: Recorded, *, task: str, kind: str, reason: str
) -> None:
    with pytest.raises(JobFailed):
        await done(app, await app.enqueue(task))
    [run] = await recorded.ended(f"process {task}", 1)
    assert run.status.status_code is StatusCode.ERROR
    found = facts(run)
    assert (found["error.type"], found["windlass.run.reason"], found["windlass.job.state"]) == (kind, reason, "failed")


async def test_a_run_that_an_operator_cancels_is_no_error(app: Windlass, recorded: Recorded) -> None:
    job = await started(app, "waits")
    await app.cancel(job)
    [run] = await recorded.ended("process waits", 1)
    assert facts(run)["windlass.run.status"] == "cancelled"
    assert run.status.status_code is StatusCode.UNSET


async def test_a_run_that_loses_its_lease_has_an_error(app: Windlass, recorded: Recorded) -> None:
    job = await started(app, "waits")
    # As if the worker had stood still, and another one had the job by now.
    await execute(await app.store(), "update windlass_jobs set token = token + 1 where state = 'running'")
    [run] = await recorded.ended("process waits", 1)
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "its lease was lost")
    assert (facts(run)["error.type"], facts(run)["messaging.message.id"]) == ("LeaseLost", str(job.id))


async def started(app: Windlass, task: str) -> Enqueued:
    """Enqueue a job and wait until it runs."""
    job = await app.enqueue(task)
    async with asyncio.timeout(20):
        while (await app.get(job)).state is not JobState.RUNNING:  # noqa: ASYNC110 - it says so in the database
            await asyncio.sleep(0.01)
    return job


@pytest.mark.usefixtures("app")
async def test_an_enqueue_that_is_refused_is_a_failed_span(recorded: Recorded) -> None:
    once = in_loop.using(unique_key="one", on_conflict="reject", delay=60)
    await once.enqueue()
    with pytest.raises(DuplicateJob):
        await once.enqueue()
    _, refused = recorded.spans("send default")
    assert facts(refused)["error.type"] == "DuplicateJob"
    assert refused.status.status_code is StatusCode.ERROR


async def test_a_duplicate_is_marked_and_keeps_the_trace_of_the_first(app: Windlass, recorded: Recorded) -> None:
    once = in_loop.using(unique_key="one", delay=60)
    job, again = await once.enqueue(), await once.enqueue()
    first, second = recorded.spans("send default")
    assert again.id == job.id
    assert ("windlass.duplicates" in facts(first), facts(second)["windlass.duplicates"]) == (False, 1)
    assert (await app.get(job)).traceparent == traceparent(first.context)


async def test_a_trace_that_is_not_sampled_is_not_kept(app: Windlass, recorded: Recorded) -> None:
    unsampled = NonRecordingSpan(SpanContext(7, 7, is_remote=True, trace_flags=TraceFlags(0)))
    with trace.use_span(unsampled):
        job = await in_loop.enqueue()
    assert (await app.get(job)).traceparent is None
    await done(app, job)
    [run] = await recorded.ended("process in_loop", 1)
    assert list(run.links) == []
    assert recorded.spans("send default") == []


async def test_a_schedule_keeps_no_trace(app: Windlass, recorded: Recorded) -> None:
    with trace.get_tracer("test").start_as_current_span(CALLER):
        schedule = await app.recurring("nightly", in_loop, timedelta(hours=1))
    assert schedule.traceparent is None
    await app.run_now(schedule.id)
    [run] = await recorded.ended("process in_loop", 1)
    assert list(run.links) == []


@pytest.mark.parametrize("where", ["at_start", "at_end"])
@pytest.mark.parametrize("task", ["in_loop", "in_thread"])
async def test_trouble_with_spans_harms_no_job(app: Windlass, recorded: Recorded, *, where: str, task: str) -> None:
    setattr(recorded.trouble, where, True)
    job = await app.enqueue(task)
    await done(app, job)
    assert (await app.get(job)).executions == 1


async def test_enqueues_and_runs_are_measured_by_the_conventions(app: Windlass, recorded: Recorded) -> None:
    await in_loop.enqueue_many([{}, {}])
    with pytest.raises(JobFailed):
        await done(app, await fails.using(lane="mail").enqueue())
    await recorded.ended("process in_loop", 2)
    await recorded.ended("process fails", 1)
    found: dict[str, Any] = recorded.measured()
    for name in ("messaging.client.sent.messages", "messaging.client.consumed.messages"):
        by_lane = {point.attributes["messaging.destination.name"]: point.value for point in found[name]}
        assert by_lane == {"mail": 1, "default": 2}
    assert sorted(point.count for point in found["messaging.client.operation.duration"]) == [1, 1]
    runs = {point.attributes["windlass.task"]: point for point in found["messaging.process.duration"]}
    assert (runs["in_loop"].count, runs["fails"].count) == (2, 1)
    assert dict(runs["fails"].attributes) == {
        "messaging.system": "windlass",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "windlass.task": "fails",
        "error.type": "LookupError",
    }
    assert runs["fails"].explicit_bounds[0] == 0.005
    assert 0 < runs["in_loop"].sum < 20
