"""The pipe whose closing ends a child and its group when their worker is gone."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
import threading
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1
_VICTIM = 500


def hold_lifeline(lifeline: int, *, parent: int) -> None:
    """Die with the worker, which alone holds the other end of the pipe, however either of them ends.

    On Linux the kernel does it, so it works for a child that is stopped or stuck in C. It kills our whole group, and
    us once more by the parent-death signal, in case a copy of the worker holds the pipe open. Processes that left the
    group outlive a worker that was killed; while it lives, it finds those too (see descendants).
    """
    os.set_inheritable(lifeline, False)  # noqa: FBT003 - takes no keywords
    if sys.platform == "linux":
        _offer_to_oom_killer()
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        # A signal when the pipe changes, and the only change there can be is its end: nobody ever writes.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    else:
        threading.Thread(target=_wait_for_end, args=(lifeline,), name="windlass-lifeline", daemon=True).start()
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    if os.getppid() != parent or poll.poll(0):
        _end_group()


def _offer_to_oom_killer() -> None:
    """Let the kernel pick the child, not the worker with all its jobs, when the machine runs out of memory."""
    score = Path("/proc/self/oom_score_adj")
    with contextlib.suppress(OSError, ValueError):
        if int(score.read_text()) < _VICTIM:
            score.write_text(str(_VICTIM))


def _wait_for_end(lifeline: int) -> None:
    os.read(lifeline, 1)
    _end_group()


def _end_group() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)
