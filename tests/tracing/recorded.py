"""What the SDK of OpenTelemetry was given in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, DataPointT, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

_PATIENCE_S = 20.0


class Troublemaker(SpanProcessor):
    """Raises where a test asks for it."""

    def __init__(self) -> None:
        self.at_start = self.at_end = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del span, parent_context
        if self.at_start:
            raise RuntimeError("no span can be started")

    def on_end(self, span: ReadableSpan) -> None:
        del span
        if self.at_end:
            raise RuntimeError("no span can be ended")


class Recorded:
    """Spans and measurements; providers can be set once in a process, so all tests share one."""

    def __init__(self) -> None:
        delta = AggregationTemporality.DELTA
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader({Counter: delta, Histogram: delta})
        provider = TracerProvider(shutdown_on_exit=False)
        self.trouble = Troublemaker()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        provider.add_span_processor(self.trouble)
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider([self._metrics], shutdown_on_exit=False))

    def clear(self) -> None:
        self.trouble.at_start = self.trouble.at_end = False
        self._spans.clear()
        self._metrics.get_metrics_data()

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """List the ended spans, oldest first."""
        return [span for span in self._spans.get_finished_spans() if name in {None, span.name}]

    async def ended(self, name: str, number: int) -> Sequence[ReadableSpan]:
        """Wait for so many spans of a name: the end of a job is in the database before its span is out."""
        async with asyncio.timeout(_PATIENCE_S):
            while len(found := self.spans(name)) < number:  # noqa: ASYNC110 - the exporter calls nobody
                await asyncio.sleep(0.01)
        return found

    def measured(self) -> dict[str, Sequence[DataPointT]]:
        """Return what was measured since the last look, by the name of the metric."""
        data = self._metrics.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return {metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics}


@cache
def recorded_here() -> Recorded:
    return Recorded()


def traceparent(context: SpanContext | None) -> str:
    """Write a context as the standard has it."""
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
