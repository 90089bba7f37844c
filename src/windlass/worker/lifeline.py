"""The pipe whose closing ends a child and its group when their worker is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import threading
from pathlib import Path

_VICTIM = 500


def hold_lifeline(lifeline: int, *, parent: int) -> None:
    """End with the worker, which alone holds the other end of the pipe, however either of them ends.

    On Linux the kernel does it, so it works for a child that is stopped or stuck in C. It kills our whole group. (The
    parent-death signal would not do: it comes when the one thread that started us ends, may so come before the pipe is
    closed, and kills us alone; with us goes the group's claim on the pipe.) Processes that left the group outlive a worker
    that was killed; while it lives, it finds those too (see descendants).
    """
    os.set_inheritable(lifeline, False)  # noqa: FBT003 - takes no keywords
    if sys.platform == "linux":
        _offer_to_oom_killer()
        # A signal when the pipe changes, and the only change there can be is its end: nothing is ever written to it.
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
