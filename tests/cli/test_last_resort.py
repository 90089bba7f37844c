"""A command that was told to stop ends, whatever hangs in it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from windlass.cli.deadline import AFTER_GRACE_S, AFTER_HURRY_S, Deadline
from windlass.cli.exit_codes import HUNG

HANGING = """
import asyncio, sys, threading, time
from datetime import timedelta
from windlass.cli import deadline
from windlass.cli.signals import Signals

deadline.AFTER_GRACE_S = 0.5

async def main():
    stopping = asyncio.Event()
    Signals(timedelta(seconds=float(sys.argv[2]))).call(stopping.set, stopping.set)
    if sys.argv[1] == "thread":
        threading.Thread(target=threading.Event().wait, name="stuck-thread").start()
    print("ready", flush=True)
    if sys.argv[1] == "task":
        await asyncio.create_task(asyncio.Event().wait(), name="stuck-task")
    if sys.argv[1] == "loop":
        time.sleep(1000)
    await stopping.wait()

asyncio.run(main())
"""

# In one piece, since two of them write; and not for ever, should the test fail.
DEAF = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'ready\\n'); time.sleep(30)"
SUPERVISING = f"""
import sys
from datetime import timedelta
from windlass.cli import deadline
from windlass.cli.supervisor import Supervisor

deadline.AFTER_GRACE_S = 0.5
sys.exit(Supervisor([[sys.executable, "-c", {DEAF!r}]] * 2, timedelta(seconds=float(sys.argv[1]))).run())
"""


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a script that says when it is ready; it does not outlive the test."""
    command = [sys.executable, "-c", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("what", ["task", "thread", "loop"])
def test_hanging_process_ends_a_moment_after_the_grace_and_logs_what_it_waited_for(what: str) -> None:
    with started(HANGING, what, "0.2") as process:
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=20)
    assert process.returncode == HUNG
    assert 0.7 <= time.monotonic() - began < 3
    assert "the end took too long" in told
    assert {"task": "task stuck-task", "thread": "thread stuck-thread", "loop": "thread MainThread in main"}[what] in told


def test_second_signal_ends_a_hanging_process_long_before_the_grace_is_over() -> None:
    with started(HANGING, "task", "60") as process:
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        began = time.monotonic()
        process.communicate(timeout=20)
    assert process.returncode == HUNG
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(("grace", "signals"), [("0.2", 1), ("60", 2)])
def test_supervisor_kills_processes_that_hear_no_signal(grace: str, signals: int) -> None:
    with started(SUPERVISING, grace) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        began = time.monotonic()
        process.communicate(timeout=20)
    assert process.returncode == HUNG
    assert time.monotonic() - began < 4


def test_further_signals_never_lengthen_the_time() -> None:
    deadline = Deadline(timedelta(seconds=1))
    deadline.note_signal(100.0)
    assert deadline.at == 101 + AFTER_GRACE_S
    deadline.note_signal(101.0)
    deadline.note_signal(104.0)
    assert deadline.at == 101 + AFTER_HURRY_S
