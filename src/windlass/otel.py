"""Spans and metrics for OpenTelemetry, by its messaging conventions; loaded only where the setting `otel` is on."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from functools import partial
from types import TracebackType
from typing import Protocol, TypeVar

from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags

from windlass.core.current import CurrentJob
from windlass.core.ids import job_uuid
from windlass.core.job import Claimed, NewJob, RunStatus
from windlass.core.outcome import Failure, Finish

log = logging.getLogger("windlass.otel")

_SCHEMA = "https://opentelemetry.io/schemas/1.36.0"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""The buckets that the conventions ask for, in seconds."""
_ERROR = "error.type"


class _EnqueueAnswer(Protocol):
    """What an enqueue led to."""

    @property
    def id(self) -> int: ...

    @property
    def is_duplicate(self) -> bool: ...


A = TypeVar("A", bound=_EnqueueAnswer)
Measure = Callable[[float, str | None], None]
"""Takes how many seconds something took, and the type of its error."""


class Tracing:
    """Writes to the providers that the program has given to OpenTelemetry; without any, nothing is written."""

    def __init__(self, version: str) -> None:
        """Ask for what is written to, as this version of Windlass; providers may be set later."""
        self._tracer = trace.get_tracer("windlass", version, schema_url=_SCHEMA)
        meter = metrics.get_meter("windlass", version, schema_url=_SCHEMA)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Number of messages producer attempted to send to the broker."
        )
        self._send_time = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of messaging operation initiated by a producer or consumer client.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Number of messages that were delivered to the application."
        )
        self._process_time = meter.create_histogram(
            "messaging.process.duration", "s", "Duration of processing operation.", explicit_bucket_boundaries_advisory=_BOUNDS
        )

    async def send(self, jobs: Sequence[NewJob], enqueue: Callable[[Sequence[NewJob]], Awaitable[Sequence[A]]]) -> Sequence[A]:
        """Enqueue jobs within one producer span, to which their runs are linked; trouble with the span harms no enqueue."""
        try:
            sending = self._sending(jobs)
        except Exception:
            log.exception("the span of an enqueue could not be started")
            return await enqueue(jobs)
        with sending:
            answers = await enqueue(sending.marked)
            sending.answers = answers
        return answers

    def _sending(self, jobs: Sequence[NewJob]) -> Sending:
        lanes = {job.lane for job in jobs}
        lane = lanes.pop() if len(lanes) == 1 else None
        attributes = _operation("send", lane)
        name = "send" if lane is None else f"send {lane}"
        span = self._tracer.start_span(name, _caller(jobs[0]), SpanKind.PRODUCER, {**attributes, **_described(jobs)})
        return Sending(jobs, span, partial(self._measure_send, len(jobs), attributes))

    def _measure_send(self, number: int, attributes: Mapping[str, str], seconds: float, error_type: str | None) -> None:
        measured = attributes if error_type is None else {**attributes, _ERROR: error_type}
        self._sent.add(number, measured)
        self._send_time.record(seconds, measured)

    def begin(self, job: Claimed) -> RunSpan | None:
        """Start the span of a run, linked to the span of the enqueue, and make it current; None when that fails."""
        try:
            attributes = _operation("process", job.lane, job.task)
            producer = None if job.traceparent is None else _context_of(job.traceparent)
            # The host's clock, as that of the spans that a handler makes.
            began_ns = time.time_ns()  # noqa: TID251
            span = self._tracer.start_span(
                f"process {job.task}",
                # A trace of its own: a job may run days later, and any number of times.
                Context(),
                SpanKind.CONSUMER,
                {**attributes, **_of_run(job)},
                None if producer is None else [Link(producer)],
                began_ns,
            )
            attach(trace.set_span_in_context(span, Context()))
            self._consumed.add(1, attributes)
        except Exception:
            log.exception("the span of a run could not be started")
            return None
        context = span.get_span_context()
        traced = job._replace(traceparent=_written(context)) if context.is_valid else job
        return RunSpan(traced, span, began_ns, partial(self._measure, span, attributes))

    def _measure(self, span: Span, attributes: Mapping[str, str], seconds: float, error_type: str | None) -> None:
        measured = attributes if error_type is None else {**attributes, _ERROR: error_type}
        # With the span, so that the measurement may show it as an example.
        self._process_time.record(seconds, measured, trace.set_span_in_context(span, Context()))

    @staticmethod
    def enter(job: Claimed) -> None:
        """Make the span of a run current that another process has started."""
        if job.traceparent is not None:
            attach(trace.set_span_in_context(NonRecordingSpan(_context_of(job.traceparent)), Context()))


class Sending:
    """An enqueue that has a span, which is current within the block."""

    def __init__(self, jobs: Sequence[NewJob], span: Span, measure: Measure) -> None:
        """Have the jobs carry the span's trace."""
        self.marked = _marked(jobs, span.get_span_context())
        self.answers: Sequence[_EnqueueAnswer] = ()
        self._span = span
        self._measure = measure
        self._began = time.perf_counter()

    def __enter__(self) -> None:
        self._before = attach(trace.set_span_in_context(self._span))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            detach(self._before)
            self._end(error)
        except Exception:
            # The jobs may be in the database: a caller that gets an error would enqueue them again.
            log.exception("the span of an enqueue could not be ended")

    def _end(self, error: BaseException | None) -> None:
        span, error_type = self._span, None if error is None else type(error).__qualname__
        if error is None or error_type is None:
            _note(span, self.marked[0], self.answers)
        else:
            span.set_attribute(_ERROR, error_type)
            span.set_status(StatusCode.ERROR, f"{error_type}: {error}")
            span.record_exception(error)
        span.end()
        self._measure(time.perf_counter() - self._began, error_type)


class RunSpan:
    """A run that has a span."""

    def __init__(self, job: Claimed, span: Span, began_ns: int, measure: Measure) -> None:
        """Keep the job with the run's own trace context, for log lines and child processes."""
        self.job = job
        self._span = span
        self._began_ns = began_ns
        self._measure = measure

    def completed(self, spent_us: int) -> None:
        """End a run that took so many microseconds and left nothing to decide."""
        self._end(spent_us, {"windlass.run.status": RunStatus.COMPLETED.value})

    def decided(self, spent_us: int, ending: Finish) -> None:
        """End a run by what was decided of its job."""
        said = {
            "windlass.run.status": ending.status,
            "windlass.run.reason": ending.reason,
            "windlass.job.state": ending.state,
        }
        found = {name: value.value for name, value in said.items() if value is not None}
        self._end(spent_us, found, ending.failure if ending.status is RunStatus.FAILED else None)

    def cut(self, spent_us: int, why: str, *, is_wanted: bool) -> None:
        """End a run whose job the store has decided about: an operator who cancels it wants that, a lost lease is an error."""
        found = {"windlass.run.status": RunStatus.CANCELLED.value}
        self._end(spent_us, found, None if is_wanted else Failure(why, "LeaseLost"))

    def _end(self, spent_us: int, found: Mapping[str, str], failure: Failure | None = None) -> None:
        try:
            span = self._span
            span.set_attributes(found)
            if failure is not None:
                span.set_attribute(_ERROR, failure.kind)
                span.set_status(StatusCode.ERROR, failure.message)
                span.add_event("exception", _exception(failure))
            # Functions end in a thread, and are reported later.
            span.end(self._began_ns + max(spent_us, 0) * 1000)
            self._measure(max(spent_us, 0) / 1e6, None if failure is None else failure.kind)
        except Exception:
            log.exception("the span of a run could not be ended")


def _operation(name: str, lane: str | None, task: str | None = None) -> dict[str, str]:
    """Return what both a span and its measurements carry: few values each."""
    attributes = {"messaging.system": "windlass", "messaging.operation.name": name, "messaging.operation.type": name}
    if lane is not None:
        attributes["messaging.destination.name"] = lane
    if task is not None:
        attributes["windlass.task"] = task
    return attributes


def _described(jobs: Sequence[NewJob]) -> dict[str, str | int]:
    tasks, correlations = {job.task for job in jobs}, {job.correlation_id for job in jobs}
    found: dict[str, str | int] = {} if len(jobs) == 1 else {"messaging.batch.message_count": len(jobs)}
    if len(tasks) == 1:
        found["windlass.task"] = jobs[0].task
    if len(correlations) == 1 and jobs[0].correlation_id is not None:
        found["messaging.message.conversation_id"] = jobs[0].correlation_id
    return found


def _of_run(job: Claimed) -> dict[str, str | int]:
    return {
        "messaging.message.id": str(job.id),
        "messaging.message.conversation_id": CurrentJob.of(job).correlation_id,
        "messaging.client.id": job.worker,
        "windlass.attempt": job.attempt,
    }


def _note(span: Span, first: NewJob, answers: Sequence[_EnqueueAnswer]) -> None:
    duplicates = sum(answer.is_duplicate for answer in answers)
    if duplicates:
        span.set_attribute("windlass.duplicates", duplicates)
    if len(answers) == 1:
        span.set_attribute("messaging.message.id", str(answers[0].id))
        if first.correlation_id is None and not duplicates:
            span.set_attribute("messaging.message.conversation_id", str(job_uuid(answers[0].id)))


def _exception(failure: Failure) -> dict[str, str]:
    event = {"exception.type": failure.kind, "exception.message": failure.message}
    return event if failure.trace is None else {**event, "exception.stacktrace": failure.trace}


def _caller(job: NewJob) -> Context | None:
    """Return what the producer span belongs to: the current span, else what came with an HTTP request."""
    if job.traceparent is None or trace.get_current_span().get_span_context().is_valid:
        return None
    return trace.set_span_in_context(NonRecordingSpan(_context_of(job.traceparent)))


def _marked(jobs: Sequence[NewJob], sender: SpanContext) -> Sequence[NewJob]:
    """Write a sampled trace on copies of jobs; not on schedules, whose runs do not belong to the request that made them."""
    if not sender.is_valid or not sender.trace_flags.sampled:
        return jobs
    text = _written(sender)
    return [job if job.recurrence is not None else _with_trace(job, text) for job in jobs]


def _with_trace(job: NewJob, traceparent: str) -> NewJob:
    # The caller may enqueue the same description again.
    marked = copy(job)
    marked.traceparent = traceparent
    return marked


def _written(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _context_of(traceparent: str) -> SpanContext:
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
