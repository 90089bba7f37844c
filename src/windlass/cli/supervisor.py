"""Keeps worker processes running: a handler may take its whole process with it.

Runs as a program of its own, `python -m windlass.cli.supervisor`, which loads next to nothing and so takes next to no memory.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import NoReturn

from windlass.cli.deadline import Deadline
from windlass.cli.exit_codes import BAD_USAGE, HUNG, REPLACED
from windlass.telemetry import configure_like_parent

log = logging.getLogger("windlass.supervisor")

PLAN = "_WINDLASS_SUPERVISOR"
"""The environment variable in which the program finds what to run. Not among the settings."""
_LEAST_S = 0.01
_KILL_AFTER_S = 0.45
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_STEADY_S = 10.0
"""A process that lived this long had started well; the next one starts at once."""


class Child:
    """One place for a process, filled anew when the process ends."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the command."""
        self._command = command
        self._wait_s = 0.0
        self._start_at = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.start(time.monotonic())

    def start(self, now: float) -> None:
        """Start the process when its time has come."""
        if self.process is None and now >= self._start_at:
            # In a group of its own: a Ctrl-C of the terminal reaches only us, and we pass it on once.
            self.process = subprocess.Popen(self._command, process_group=0)  # noqa: S603 - our own command
            self._started_at = now

    def look(self, now: float) -> int | None:
        """Notice that the process has ended and plan its successor; returns its exit code."""
        code = None if self.process is None else self.process.poll()
        if code is not None:
            self.process = None
            is_steady = code in {0, REPLACED} or now - self._started_at > _STEADY_S
            self._wait_s = 0.0 if is_steady else min(max(self._wait_s * 2, _FIRST_WAIT_S), _LONGEST_WAIT_S)
            self._start_at = now + self._wait_s
            log.warning("a worker %s; the next one starts in %.1f s", describe(code), self._wait_s)
        return code

    @property
    def starts_at(self) -> float | None:
        """When the next process starts; None while there is one."""
        return self._start_at if self.process is None else None

    @property
    def is_running(self) -> bool:
        """Whether its process has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def is_cut_short(self) -> bool:
        """Whether its process did not end by itself when it was asked to."""
        return self.process is not None and self.process.returncode in {HUNG, -signal.SIGKILL}

    def send(self, number: int) -> None:
        """Pass a signal on."""
        if self.process is not None:
            self.process.send_signal(number)


def describe(code: int) -> str:
    """Return how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


class Supervisor:
    """Runs commands until it is asked to stop."""

    def __init__(self, commands: Sequence[Sequence[str]], grace: timedelta) -> None:
        """Describe what to run, each in a process, and how long one may take to end."""
        self._commands = commands
        self._deadline = Deadline(grace)
        self._asked: list[int] = []

    def run(self, banner_text: str = "") -> int:
        """Print `banner_text` and run until stopped; returns the exit code for our own process."""
        with self._signals() as wake:
            if banner_text:
                print(banner_text, flush=True)  # noqa: T201 - the command's own text, once a signal came
            children = [Child(command) for command in self._commands]
            while self._deadline.at is None:
                self._sleep(wake, min(filter(None, (child.starts_at for child in children)), default=None))
                now = time.monotonic()
                codes = [child.look(now) for child in children]
                if BAD_USAGE in codes:
                    self._stop(children, wake)
                    return BAD_USAGE
                for child in children:
                    child.start(now)
            return HUNG if self._stop(children, wake) else 0

    def _stop(self, children: Sequence[Child], wake: int) -> bool:
        """Pass every signal on and wait for the last process; returns whether one had to be cut short.

        Each ends by itself within its own grace. One that cannot, stopped or stuck in C, is killed.
        """
        passed_on = 0
        if not self._asked:
            self._note(signal.SIGTERM)
        while any(child.is_running for child in children):
            for number in self._asked[passed_on:]:
                for child in children:
                    child.send(number)
            passed_on = len(self._asked)
            if time.monotonic() >= self._kill_at:
                for child in children:
                    child.send(signal.SIGKILL)
            self._sleep(wake, self._kill_at)
        return any(child.is_cut_short for child in children)

    @property
    def _kill_at(self) -> float:
        """When the processes must have ended; each is given a moment to end itself first and log why."""
        return (self._deadline.at or 0.0) + _KILL_AFTER_S

    def _sleep(self, wake: int, until: float | None) -> None:
        """Wait for a signal or the end of a process, and no longer than `until`."""
        readable, _, _ = select.select([wake], [], [], None if until is None else max(until - time.monotonic(), _LEAST_S))
        if readable:
            os.read(wake, 4096)

    @contextmanager
    def _signals(self) -> Iterator[int]:
        """Receive signals and the ends of children at once, through a pipe that wakes the wait."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        handlers = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield reader
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            os.close(reader)
            os.close(writer)

    def _note(self, number: int, _frame: FrameType | None = None) -> None:
        self._asked.append(number)
        self._deadline.note_signal(time.monotonic())


def become(commands: Sequence[Sequence[str]], count: int, grace: timedelta, banner_text: str) -> NoReturn:
    """Replace this process by the program, which runs each command so many times."""
    plan = json.dumps({"commands": commands, "count": count, "grace_s": grace.total_seconds(), "banner_text": banner_text})
    sys.stdout.flush()
    sys.stderr.flush()
    # What was typed stands behind it, so that the list of processes shows it.
    command = [sys.executable, "-m", "windlass.cli.supervisor", *sys.argv[1:]]
    os.execve(sys.executable, command, os.environ | {PLAN: plan})  # noqa: S606 - our own command


def main() -> int:
    """Run what the command before has left in the environment."""
    plan = json.loads(os.environ.pop(PLAN))
    configure_like_parent()
    commands = [command for command in plan["commands"] for _ in range(plan["count"])]
    return Supervisor(commands, timedelta(seconds=plan["grace_s"])).run(plan["banner_text"])


if __name__ == "__main__":
    sys.exit(main())
