"""One child process: its start, its socket, its death and what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Any, NamedTuple
from uuid import uuid4

from windlass.worker.descendants import MARK, kill_descendants
from windlass.worker.frames import BadFrame, Channel, encode_frame
from windlass.worker.wire import Cost, pack_refusal

# Past this many unread messages the child has to wait: its handler asks faster than the store answers.
_MOST_UNREAD = 64
_SWEEPS = 50
_SWEEP_PAUSE_S = 0.01
# How long a process that closed its socket may take to end by itself, and so with its own exit code.
_LAST_BREATH_S = 0.2


class Death(NamedTuple):
    """How a child process ended; the status is an exit code, or a signal's number below zero."""

    status: int | None
    cpu_total_ms: int | None


class ChildProcess:
    """A child from its start to its reaping."""

    def __init__(self, target: str, loop: asyncio.AbstractEventLoop) -> None:
        """Start it; raises OSError when the system has no room for it.

        It dies with the thread that calls this, so that must be the event loop's own.
        """
        self._loop = loop
        self._mark = uuid4().hex
        self._lock = threading.Lock()
        self._is_reaped = False
        self._unread: deque[Any] = deque()
        self._waiter: asyncio.Future[Any] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()
        """Set once the process and its descendants are gone and reaped."""
        self.jobs = 0
        self.cost = Cost(0, 0, 0, 0)
        """What the last run cost."""
        self.base_mb = 0
        """What it held before its first job."""
        self.over_mb: int | None = None
        """What it held when it was ended for that."""
        self.is_killed = False
        self.is_cut = False
        """Whether its socket is closed, so that it is dying or soon will."""
        self.broken: str | None = None
        """Why it was ended: its connection was lost."""
        ours, theirs = socket.socketpair()
        try:
            self._process, self._lifeline = _spawn(target, theirs.fileno(), self._mark)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        try:
            threading.Thread(target=self._bury, name=f"windlass-child-{self.pid}", daemon=True).start()
        except RuntimeError as error:
            ours.close()
            self._process.kill()
            self._process.wait()
            os.close(self._lifeline)
            raise OSError(errno.EAGAIN, str(error)) from error
        self._channel = Channel(ours, loop, received=self._receive, lost=self._lose)
        self.send(sys.path)

    def send(self, message: Any) -> None:
        """Send a message to the child."""
        self._channel.send(encode_frame(message))

    def answer(self, number: int, value: Any, refusal: list[Any] | None) -> None:
        """Answer one of its calls."""
        try:
            self.send(["answer", number, value, refusal])
        except BadFrame as error:
            self.send(["answer", number, None, pack_refusal(error)])

    async def hear(self) -> Any:
        """Wait for the child's next message; the last one is its Death."""
        if self._unread:
            self._channel.resume()
            return self._unread.popleft()
        self._waiter = self._loop.create_future()
        return await self._waiter

    def retire(self, timeout_s: float) -> None:
        """Let it end by itself, and kill it when that takes too long."""
        if self._deadline is None and not self.gone.is_set():
            self.send(["bye"])
            self._deadline = self._loop.call_later(timeout_s, self.kill_now)

    def kill_now(self) -> None:
        """Kill it with all its descendants, from any thread and without waiting."""
        self.is_killed = True
        self._start_kill()

    def exceed(self, held_mb: int) -> None:
        """Kill it for the memory it holds; called by the memory watch, on its thread."""
        self.over_mb = held_mb
        self.kill_now()

    def _start_kill(self, why_broken: Exception | None = None) -> None:
        # On a thread: looking through all processes takes milliseconds that the event loop has not got.
        try:
            threading.Thread(target=self._kill, args=(why_broken,), name=f"windlass-kill-{self.pid}", daemon=True).start()
        except RuntimeError:
            # No thread can be started; the process must end all the same.
            self._kill(why_broken)

    def _kill(self, why_broken: Exception | None = None) -> None:
        with self._lock:
            # Once reaped, its number may be another's.
            if not self._is_reaped:
                self.broken = self.broken or (None if why_broken is None else str(why_broken))
                kill_descendants(self.pid, self._mark)

    def _receive(self, message: Any) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(message)
            return
        self._unread.append(message)
        if len(self._unread) >= _MOST_UNREAD:
            self._channel.pause()

    def _lose(self, why: Exception) -> None:
        """End a child that sent something that is no message, or that closed its socket and does not end by itself."""
        self.is_cut = True
        if isinstance(why, BadFrame):
            # Set now: the child, which sees the socket close, may end before the kill.
            self.broken = str(why)
            self._start_kill()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(_LAST_BREATH_S, self._start_kill, why)

    def _bury(self) -> None:
        """Wait for the child's death, end what it leaves behind, and reap it; on a thread of its own."""
        is_zombie = _await_death(self.pid)
        with self._lock:
            if is_zombie:
                self._sweep()
            death = _reap(self.pid)
            self._is_reaped = True
        # Else the subprocess module would one day wait for this number itself.
        self._process.returncode = death.status or 0
        os.close(self._lifeline)
        # No caller waits when the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._die, death)

    def _sweep(self) -> None:
        """Kill what the child started until nothing is left; bounded, because a process stuck in the kernel stays."""
        for _ in range(_SWEEPS):
            if not kill_descendants(self.pid, self._mark):
                return
            time.sleep(_SWEEP_PAUSE_S)

    def _die(self, death: Death) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._channel.drain()
        self._receive(death)
        self.gone.set()


def _spawn(target: str, channel: int, mark: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a fresh interpreter in a session of its own: a fork of a process with threads would inherit locked locks."""
    theirs, lifeline = os.pipe()
    command = [sys.executable, "-m", "windlass.worker.child", target, str(channel), str(theirs), str(os.getpid())]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module; the target is the operator's
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=(channel, theirs),
            start_new_session=True,
            env={**os.environ, MARK: mark},
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(theirs)
    return process, lifeline


def _await_death(pid: int) -> bool:
    """Wait until the process has ended, and leave it a zombie, so that its number stays its own until we are done.

    False when something else has reaped it.
    """
    try:
        if sys.platform == "darwin":
            # Python has waitid there only from 3.13 on.
            exit_of = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            with contextlib.closing(select.kqueue()) as queue:
                queue.control([exit_of], 1)
        else:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except (ChildProcessError, ProcessLookupError):
        return False
    return True


def _reap(pid: int) -> Death:
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError:
        # A handler in the worker itself waited for any process at all, or SIGCHLD is ignored.
        return Death(None, None)
    return Death(os.waitstatus_to_exitcode(status), round((usage.ru_utime + usage.ru_stime) * 1000))
