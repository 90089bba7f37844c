# /// script
# requires-python = ">=3.11"
# dependencies = ["celery[redis]", "hiredis"]
# ///
"""Celery on Redis."""

from __future__ import annotations

import os
import sys

from celery import Celery, group
from program import ADDRESS, FILLER, About, Peer, main, note

PREFETCH = 128
app = Celery("peers", broker=ADDRESS.replace("unix://", "redis+socket://", 1))
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=PREFETCH,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 3600},
)


@app.task(name="work")
def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class CeleryPeer(Peer):
    """Celery."""

    async def enqueue(self, number: int) -> None:
        """Send one."""
        work.delay(number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Send a group."""
        group(work.s(number=number, filler=FILLER) for number in numbers).apply_async()

    def work(self) -> None:
        """Run a worker with one child."""
        app.worker_main(
            [
                "worker",
                "--pool=prefork",
                "--concurrency=1",
                "--loglevel=WARNING",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "-Ofair",
                f"--hostname={os.getpid()}@peers",
            ]
        )
        sys.exit(0)


if __name__ == "__main__":
    main(
        CeleryPeer(),
        About(
            title="Celery",
            package="celery",
            tuning=f"prefork with one child a worker, `worker_prefetch_multiplier={PREFETCH}`, results and events off, gossip, "
            "mingle and heartbeat off, hiredis; bulk by `group`",
            history="default without a result backend: none",
            crash="`task_acks_late`: a job of a lost worker comes back after the visibility timeout (1 h)",
            left="return redis.call('llen', 'celery') + redis.call('hlen', 'unacked')",
            versions=("kombu", "redis"),
        ),
    )
