"""docs/middleware.md: its blocks on a worker, with the real structlog, Sentry, OpenTelemetry and SQLAlchemy."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
import sqlalchemy
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport
from structlog.testing import LogCapture

from tests.docs.blocks import blocks
from windlass import JobFailed, Windlass

PAGE = "docs/middleware.md"


@pytest.fixture
async def page(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Any]]:
    """Run every block of the page, as one program, on this database."""
    monkeypatch.chdir(tmp_path)
    source = "\n".join(block.text for block in blocks(PAGE, "python"))
    assert '"sqlite:///shop.db"' in source
    names: dict[str, Any] = {}
    exec(compile(source.replace('"sqlite:///shop.db"', repr(url)), PAGE, "exec"), names)
    yield names
    await names["engine"].dispose()


async def test_the_first_example_times_and_refuses(page: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    app: Windlass = page["app"]
    async with app, app.working():
        assert await app.wait(await page["mail"].enqueue(to="ann"), timeout=20) == "Dear ann"
        with pytest.raises(JobFailed, match="nobody reads mail there"):
            await app.wait(await page["mail"].enqueue(to="bob@example.invalid"), timeout=20)
    assert capsys.readouterr().out.startswith("mail {'to': 'ann'} Dear ann 0.")


async def test_a_line_of_structlog_carries_its_job(page: dict[str, Any]) -> None:
    app: Windlass = page["app"]
    kept = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, kept])

    @app.task
    def greet(name: str) -> None:
        structlog.get_logger().info("hello", name=name)

    try:
        async with app, app.working():
            jobs = [await greet.using(correlation_id=f"c-{name}").enqueue(name) for name in ("ann", "bob")]
            for job in jobs:
                await app.wait(job, timeout=20)
    finally:
        structlog.configure(processors=before)
    lines = sorted(kept.entries, key=lambda line: str(line["name"]))
    assert [(line["task"], line["job_id"], line["attempt"], line["correlation_id"]) for line in lines] == [
        ("greet", jobs[0].id, 1, "c-ann"),
        ("greet", jobs[1].id, 1, "c-bob"),
    ]


class KeepingTransport(Transport):
    """Keeps events instead of sending them."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        event: Any = envelope.get_event()
        if event is not None:
            self.events.append(event)


async def test_what_is_reported_inside_a_handler_has_the_tags_of_its_job(page: dict[str, Any]) -> None:
    app: Windlass = page["app"]
    transport = KeepingTransport()
    sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=transport)

    @app.task
    async def complain() -> None:
        logging.getLogger("shop").error("the shop is closed")

    try:
        async with app, app.working():
            job = await complain.enqueue()
            await app.wait(job, timeout=20)
    finally:
        sentry_sdk.get_client().close()
        sentry_sdk.get_global_scope().set_client(None)
    [event] = [event for event in transport.events if event["logger"] == "shop"]
    assert event["tags"] == {"task": "complain", "job_id": str(job.id), "attempt": "1"}


async def test_the_span_of_a_run_gets_its_attributes(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    app: Windlass = page["app"]
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    app.configure(otel=True)
    async with app, app.working():
        await app.wait(await page["mail"].enqueue(to="ann"), timeout=20)
    [span] = [span for span in exporter.get_finished_spans() if span.name == "process mail"]
    assert span.attributes is not None
    assert (span.attributes["shop.customer"], span.attributes["shop.letters"]) == ("ann", 8)


async def test_a_session_of_its_own_is_committed_or_rolled_back_with_the_run(page: dict[str, Any]) -> None:
    app: Windlass = page["app"]
    async with page["engine"].begin() as connection:
        await connection.execute(sqlalchemy.text("create table customers (name text)"))

    @app.task(max_attempts=1)
    async def keep(name: str) -> None:
        await page["current_session"].get().execute(sqlalchemy.text("insert into customers values (:name)"), {"name": name})
        if name == "bob":
            raise ValueError("not bob")

    async with app, app.working():
        await app.wait(await keep.enqueue("ann"), timeout=20)
        with pytest.raises(JobFailed, match="not bob"):
            await app.wait(await keep.enqueue("bob"), timeout=20)
    async with page["engine"].connect() as connection:
        assert (await connection.execute(sqlalchemy.text("select name from customers"))).all() == [("ann",)]
