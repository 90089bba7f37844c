# /// script
# requires-python = ">=3.11"
# dependencies = ["rq", "hiredis"]
# ///
"""RQ on Redis."""

from __future__ import annotations

from program import ADDRESS, FILLER, About, Peer, main, note
from redis import Redis
from rq import Queue, SimpleWorker

QUEUE = "default"


def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class RqPeer(Peer):
    """RQ."""

    async def open(self) -> None:
        """Connect."""
        self._queue = Queue(QUEUE, connection=Redis.from_url(ADDRESS))

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        self._queue.enqueue("rq_program.work", number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue many."""
        self._queue.enqueue_many(
            [Queue.prepare_data("rq_program.work", kwargs={"number": number, "filler": FILLER}) for number in numbers]
        )

    def work(self) -> None:
        """Run a worker that does not fork for each job."""
        connection = Redis.from_url(ADDRESS)
        SimpleWorker([Queue(QUEUE, connection=connection)], connection=connection).work(logging_level="WARNING")


if __name__ == "__main__":
    main(
        RqPeer(),
        About(
            title="RQ",
            package="rq",
            tuning="`SimpleWorker` (its default worker forks for each job), hiredis; bulk by `enqueue_many`",
            history="default: job and result are kept for 500 s",
            crash="at most once unless a retry is asked for; abandoned jobs go to the failed registry",
            left="return redis.call('llen', 'rq:queue:default') + redis.call('zcard', 'rq:wip:default')",
            versions=("redis",),
        ),
    )
