"""The examples of docs/http-client.md, run in order against a server and a worker: needs the routes of /api/v1/jobs."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.remote.conftest import TOKEN
from windlass import Windlass

PAGE = Path(__file__).parents[2] / "docs" / "http-client.md"


@contextmanager
def working(app: Windlass) -> Iterator[None]:
    """Run a worker in a thread."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def work() -> None:
        async with app, app.working():
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def test_the_examples_run(address: str, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Windlass(database)

    @app.task
    def email(to: str) -> str:
        return f"sent to {to}"

    monkeypatch.setenv("WINDLASS_URL", address)
    monkeypatch.setenv("WINDLASS_TOKEN", TOKEN)
    names: dict[str, Any] = {}
    with working(app):
        for place, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)):
            exec(compile(block, f"{PAGE.name} block {place}", "exec"), names)
    names["client"].close()
