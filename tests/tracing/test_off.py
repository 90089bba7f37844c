"""Tracing that is not asked for costs nothing, and one that cannot be had is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.claims import a_claimed_job
from tests.tracing.recorded import Recorded
from windlass import ConfigError, NewJob, Windlass
from windlass.core.current import CurrentJob
from windlass.errors import InvalidInput

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_PROGRAM = """
import asyncio, sys
from windlass import Windlass

app = Windlass("sqlite:///" + sys.argv[1])

@app.task
async def work() -> int:
    return 1

async def main() -> None:
    async with app, app.working():
        assert await app.wait(await work.enqueue(), timeout=20) == 1

asyncio.run(main())
assert not [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]
"""
_WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from windlass import ConfigError, Windlass

try:
    Windlass("sqlite:///" + sys.argv[1]).enqueue_sync("work")
except ConfigError as error:
    print(error)
"""


def run(program: str, path: Path, **environment: str) -> str:
    command = [sys.executable, "-c", program, str(path / "jobs.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_opentelemetry_is_loaded_unless_it_is_asked_for(tmp_path: Path) -> None:
    run(_PROGRAM, tmp_path)


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    said = run(_WITHOUT, tmp_path, WINDLASS_OTEL="true")
    assert said == "otel: is on, and opentelemetry-api is not installed: pip install 'windlass[otel]'\n"


def test_a_bad_value_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_OTEL", "perhaps")
    with pytest.raises(ConfigError, match=r"WINDLASS_OTEL: .*perhaps"):
        _ = Windlass().settings


async def test_a_worker_that_does_not_trace_logs_the_trace_of_the_enqueue(url: str, recorded: Recorded) -> None:
    app = Windlass(url)
    seen: list[str] = []

    @app.task
    async def look() -> None:
        from windlass.core.current import current_job  # noqa: PLC0415 - as a log line does

        job = current_job()
        assert job is not None
        seen.append(job.log_fields["trace_id"])

    async with app, app.working():
        job = look.job()
        job.traceparent = PARENT
        [made] = await app.enqueue_jobs([job])
        await app.wait(made, timeout=20)
    assert seen == ["4bf92f3577b34da6a3ce929d0e0e4736"]
    assert recorded.spans() == []


def test_a_job_without_a_trace_logs_none() -> None:
    assert "trace_id" not in CurrentJob.of(a_claimed_job()).log_fields


@pytest.mark.parametrize("text", ["", "x", PARENT.upper(), f"{PARENT}\n", f"{PARENT}-x", f"00-{'0' * 32}-{'1' * 16}-01"])
def test_what_is_no_trace_context_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="traceparent: must be a W3C trace context"):
        NewJob(task="work", traceparent=text)
