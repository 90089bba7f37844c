"""The processes under attack, kept running by a supervisor of our own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.timeline import Timeline

ROOT = Path(__file__).resolve().parents[2]
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
HURRY_S = 2.0
"""How long a process may take to end after it was told to for the second time."""
STOP_SLACK_S = 3.0
"""What a busy machine may add to a promised time."""


@dataclass
class Role:
    """A command that is started again whenever it ends."""

    name: str
    command: list[str]
    environment: Callable[[], Mapping[str, str]]
    is_worker: bool = False
    """Whether it, or processes that it starts, hold leases."""
    database_class: str = ""
    """Which proxy leads it to the database."""
    process: subprocess.Popen[bytes] | None = None
    term_sent: float | None = None
    hurry_sent: float | None = None
    """When it was told to stop for the second time."""
    is_wanted: bool = True
    holders: dict[int, None] = field(default_factory=dict)
    """Every process of it that has ever held leases."""

    @property
    def is_supervisor(self) -> bool:
        """Whether jobs run in the processes that it starts, and not in itself."""
        return "worker" in self.command


class Fleet:
    """Starts roles, starts them again, and knows every process of theirs."""

    def __init__(self, folder: Path, timeline: Timeline, *, grace_s: float) -> None:
        self.roles: dict[str, Role] = {}
        self._folder = folder
        self._timeline = timeline
        self._stop_bound_s = grace_s + 5.0 + STOP_SLACK_S
        self._living: dict[int, str] = {}

    def add(self, role: Role) -> None:
        self.roles[role.name] = role
        self._start(role)

    def _start(self, role: Role) -> None:
        with (self._folder / f"{role.name}.log").open("ab") as log:
            role.process = subprocess.Popen(
                [sys.executable, "-m", *role.command],
                cwd=ROOT,
                env={**os.environ, **role.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_us,  # noqa: PLW1509 - one call of the C library, already loaded
            )
        role.term_sent = role.hurry_sent = None

    def look(self) -> None:
        """Note who has ended, start it again, and kill who would not stop."""
        for role in self.roles.values():
            process = role.process
            if process is None:
                continue
            if process.poll() is None:
                self._watch_stop(role, process)
            elif role.is_wanted:
                self._start(role)
            else:
                role.process = None
        self._note_living()

    def _watch_stop(self, role: Role, process: subprocess.Popen[bytes]) -> None:
        now = time.monotonic()
        for sent, bound_s, what in (
            (role.term_sent, self._stop_bound_s, "SIGTERM"),
            (role.hurry_sent, HURRY_S + STOP_SLACK_S, "a second SIGTERM"),
        ):
            if sent is not None and now - sent > bound_s:
                complaint = f"{role.name} (process {process.pid}) did not end within {bound_s:.0f} s of {what}"
                self._timeline.complaints.append(complaint)
                self.kill_tree(process.pid)
                role.term_sent = role.hurry_sent = None
                return

    def _note_living(self) -> None:
        living: dict[int, str] = {}
        children = _children()
        for role in self.roles.values():
            if role.process is not None and role.process.poll() is None:
                own = role.process.pid
                living |= dict.fromkeys((own, *_below(own, children)), role.name)
                if role.is_worker:
                    role.holders |= dict.fromkeys(children.get(own, ()) if role.is_supervisor else (own,))
        for pid, name in self._living.items():
            # An orphan of a killed supervisor still runs and may finish its work.
            if pid not in living and not _is_alive(pid):
                self._timeline.died(pid, name)
            elif pid not in living:
                living[pid] = name
        self._living = living

    def pids(self, name: str) -> list[int]:
        """List the living processes of a role."""
        return [pid for pid, role in self._living.items() if role == name and _is_alive(pid)]

    def holders(self, name: str) -> list[int]:
        """List the living processes of a role that run jobs: not its supervisor, not its children's children."""
        role = self.roles[name]
        if role.process is None:
            return []
        if not role.is_supervisor:
            return [role.process.pid]
        return [pid for pid in self.pids(name) if _parent(pid) == role.process.pid]

    def grandchildren(self, name: str) -> list[int]:
        """List the processes that a role's workers run handlers in."""
        holders = set(self.holders(name))
        return [pid for pid in self.pids(name) if _parent(pid) in holders]

    def terminate(self, name: str) -> None:
        """Tell a role to stop in order."""
        role = self.roles[name]
        if role.process is not None and role.term_sent is None:
            role.term_sent = time.monotonic()
            own = role.process.pid
            # Noted first: nothing that is given back because of the signal may come before it.
            self._timeline.told_to_stop((own, *_below(own, _children())))
            role.process.send_signal(signal.SIGTERM)

    def hurry(self, name: str) -> None:
        """Tell a role that is stopping to stop at once."""
        role = self.roles[name]
        if role.process is not None and role.process.poll() is None and role.term_sent is not None:
            role.hurry_sent = time.monotonic()
            role.process.send_signal(signal.SIGTERM)

    def retire(self, *names: str) -> None:
        """Stop roles for good, in order."""
        for name in names:
            self.roles[name].is_wanted = False
            self.terminate(name)

    def are_gone(self, *names: str) -> bool:
        return not any(self.pids(name) for name in names)

    def kill_tree(self, pid: int) -> None:
        for each in (*_below(pid, _children()), pid):
            kill(each, signal.SIGKILL)

    def close(self) -> None:
        """End everything that still runs."""
        for role in self.roles.values():
            role.is_wanted = False
            if role.process is not None:
                self.kill_tree(role.process.pid)
                role.process.wait()
        for pid in self._living:
            kill(pid, signal.SIGCONT)
            kill(pid, signal.SIGKILL)


def _die_with_us() -> None:
    """Leave no process behind, not even when this one is killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def kill(pid: int, number: signal.Signals) -> bool:
    """Send a signal; says whether there was somebody to get it."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (parent := _parent(int(path.name))):
            found.setdefault(parent, []).append(int(path.name))
    return found


def _below(pid: int, children: dict[int, list[int]]) -> list[int]:
    found = []
    for child in children.get(pid, ()):
        found += [child, *_below(child, children)]
    return found
