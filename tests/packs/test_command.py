"""Shell commands as jobs."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.crash.processes import until
from windlass import Windlass, packs
from windlass.packs.command import CommandFailed, WrongUser, run_command
from windlass.testing import Ran, run_all


async def ran(app: Windlass, **payload: Any) -> Ran:
    packs.install(app, ["command"])
    await app.enqueue("command", payload, max_attempts=1)
    [run] = await run_all(app)
    return run


async def test_a_command_runs_with_its_input_and_environment_and_nothing_of_ours(
    app: Windlass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WINDLASS_TEST_SECRET", "sesame")
    caplog.set_level(logging.INFO, logger="windlass.packs")
    out = tmp_path / "out"
    line = f'cat > {out}; echo "$GREETING:$WINDLASS_TEST_SECRET:$0" >> {out}; echo said'
    run = await ran(app, command=line, env={"GREETING": "hello"}, stdin="one\ntwo\n")
    assert (run.status, run.result) == ("completed", {"exit_code": 0})
    assert out.read_text() == "one\ntwo\nhello::/bin/sh\n"
    store = await app.store()
    [execution] = await store.list_executions(run.job_id)
    assert "said" in (execution.log_excerpt or "")


async def test_an_exit_code_is_a_failure_that_shows_the_last_line(app: Windlass) -> None:
    run = await ran(app, command="echo first; echo 'no such host' >&2; exit 3")
    assert (run.status, run.message) == ("failed", "exit code 3: no such host")


async def test_output_without_end_is_cut(app: Windlass) -> None:
    run = await ran(app, command="head -c 3000000 /dev/zero | tr '\\0' x")
    assert run.status == "completed"


async def test_a_command_that_is_cancelled_ends_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    line = f"sleep 60 & echo $! >> {pids}; trap '' TERM; echo $$ >> {pids}; sleep 60; sleep 60"
    task = asyncio.ensure_future(run_command(line, {}, None, None))
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the command to begin")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(map(_lives, pids.read_text().split())), "all its processes to end")


def _lives(pid: str) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().split()[2] != "Z"


async def test_a_command_of_another_user_is_not_run_as_ours() -> None:
    with pytest.raises(WrongUser, match="nobody-knows"):
        await run_command("true", {}, None, "nobody-knows")


async def test_a_shell_of_its_own_is_used() -> None:
    with pytest.raises(CommandFailed, match=json.dumps("ours")[1:-1]):
        await run_command("echo ours; exit 1", {"SHELL": "/bin/bash"}, None, None)
