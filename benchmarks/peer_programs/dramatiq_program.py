# /// script
# requires-python = ">=3.11"
# dependencies = ["dramatiq[redis]", "hiredis"]
# ///
"""Dramatiq on Redis."""

from __future__ import annotations

import os
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from program import ADDRESS, FILLER, About, Peer, main, note

THREADS = 8
PREFETCH = 200
os.environ.setdefault("dramatiq_queue_prefetch", str(PREFETCH))
dramatiq.set_broker(RedisBroker(url=ADDRESS))


@dramatiq.actor
def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class DramatiqPeer(Peer):
    """Dramatiq."""

    async def enqueue(self, number: int) -> None:
        """Send one."""
        work.send(number=number, filler=FILLER)

    def work(self) -> None:
        """Become `dramatiq`."""
        program = os.path.join(os.path.dirname(sys.executable), "dramatiq")  # noqa: PTH118, PTH120 - a link must stay a link
        os.execv(program, [program, "dramatiq_program", "--processes", "1", "--threads", str(THREADS)])


if __name__ == "__main__":
    main(
        DramatiqPeer(),
        About(
            title="Dramatiq",
            package="dramatiq",
            tuning=f"one process of {THREADS} threads (its default), `dramatiq_queue_prefetch={PREFETCH}`, hiredis; no bulk call",
            history="default: none",
            crash="at least once: a dead worker's messages are requeued by the others' maintenance",
            left="return redis.call('llen', 'dramatiq:default') + redis.call('hlen', 'dramatiq:default.msgs')",
            has_bulk=False,
            versions=("redis",),
        ),
    )
