"""The hook of examples/sentry_errors, with the real SDK of Sentry and a transport that keeps what it is given."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from tests.support.stores import fresh_url
from windlass import JobContext, JobFailed, Windlass

APP = Path(__file__).parents[2] / "examples" / "sentry_errors" / "app.py"


class KeepingTransport(Transport):
    """Keeps events instead of sending them."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        event: Any = envelope.get_event()
        if event is not None:
            self.events.append(event)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
def example(url: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the example afresh, on this database."""
    monkeypatch.setenv("WINDLASS_DATABASE_URL", url)
    spec = importlib.util.spec_from_file_location("sentry_errors_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def transport(example: ModuleType) -> Iterator[KeepingTransport]:
    """Set Sentry up as the example does, and take it away again."""
    kept = KeepingTransport()
    example.start_sentry(dsn="https://key@sentry.invalid/1", transport=kept, default_integrations=True)
    try:
        yield kept
    finally:
        sentry_sdk.get_client().close()
        sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
async def app(example: ModuleType, transport: KeepingTransport) -> AsyncIterator[Windlass]:
    """Run the example with its worker."""
    assert transport.events == []
    made: Windlass = example.app

    @made.task(max_attempts=2)
    async def second_time(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ValueError("not yet")

    async with made, made.working():
        yield made


async def test_a_job_that_fails_for_good_is_one_event_with_its_tags(app: Windlass, transport: KeepingTransport) -> None:
    job = await app.enqueue("greet", {"name": "eve"}, lane="mail")
    with pytest.raises(JobFailed):
        await app.wait(job, timeout=20)
    [event] = await settled(app, transport)
    assert event["tags"] == {"task": "greet", "lane": "mail", "job_id": str(job.id), "attempt": "3"}
    [error] = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("KeyError", "'eve'")
    assert error["stacktrace"]["frames"][-1]["function"] == "greet"
    assert event["contexts"]["job"]["state"] == "failed"


async def test_a_run_that_is_tried_again_is_no_event_unless_it_is_wanted(
    app: Windlass, transport: KeepingTransport, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.wait(await app.enqueue("second_time"), timeout=20)
    assert await settled(app, transport) == []
    monkeypatch.setattr(example, "EVERY_TRY", True)
    job = await app.enqueue("second_time")
    await app.wait(job, timeout=20)
    [event] = await settled(app, transport)
    assert event["tags"] == {"task": "second_time", "lane": "default", "job_id": str(job.id), "attempt": "1"}


async def test_a_job_that_timed_out_is_a_message(app: Windlass, transport: KeepingTransport) -> None:
    with pytest.raises(JobFailed):
        await app.wait(await app.enqueue("linger"), timeout=20)
    [event] = await settled(app, transport)
    assert (event["level"], event["message"]) == ("error", "timed out after 100 ms")
    assert event["tags"]["attempt"] == "2"


async def test_an_error_that_a_handler_logs_itself_is_still_an_event(app: Windlass, transport: KeepingTransport) -> None:
    logging.getLogger("shop").error("the shop is closed")
    [event] = await settled(app, transport)
    assert event["logger"] == "shop"


async def settled(app: Windlass, transport: KeepingTransport) -> list[dict[str, Any]]:
    """Wait until every hook so far has been called: those of a later job come after them."""
    await app.wait(await app.enqueue("greet", {"name": "ann"}), timeout=20)
    return transport.events
