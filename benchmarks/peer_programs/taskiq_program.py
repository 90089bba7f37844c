# /// script
# requires-python = ">=3.11"
# dependencies = ["taskiq", "taskiq-redis", "uvloop", "hiredis"]
# ///
"""Taskiq on Redis streams."""

from __future__ import annotations

import asyncio
import os
import sys

import uvloop
from program import ADDRESS, FILLER, About, Peer, main, note
from taskiq_redis import RedisStreamBroker

TASKS = 500
# "0", as the group must also see what was sent before the first worker came.
broker = RedisStreamBroker(ADDRESS or "redis://", consumer_id="0")


@broker.task(task_name="work")
async def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class TaskiqPeer(Peer):
    """Taskiq."""

    loop_factory = staticmethod(uvloop.new_event_loop)

    async def open(self) -> None:
        """Connect."""
        await broker.startup()

    async def close(self) -> None:
        """Disconnect."""
        await broker.shutdown()

    async def enqueue(self, number: int) -> None:
        """Send one."""
        await work.kiq(number=number, filler=FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Send many at the same time: there is no bulk call."""
        for start in range(0, len(numbers), 50):
            await asyncio.gather(*(self.enqueue(number) for number in numbers[start : start + 50]))

    def work(self) -> None:
        """Become `taskiq worker`."""
        program = os.path.join(os.path.dirname(sys.executable), "taskiq")  # noqa: PTH118, PTH120 - a link must stay a link
        options = ["--workers", "1", "--max-async-tasks", str(TASKS), "--max-prefetch", str(TASKS), "--log-level", "WARNING"]
        os.execv(program, [program, "worker", "taskiq_program:broker", *options])


if __name__ == "__main__":
    main(
        TaskiqPeer(),
        About(
            title="Taskiq",
            package="taskiq",
            tuning=f"`RedisStreamBroker`, `--workers 1 --max-async-tasks {TASKS} --max-prefetch {TASKS}`, uvloop, hiredis; "
            "no bulk call: 50 at the same time",
            history="default: the stream keeps every message; no result backend",
            crash="at least once: another worker claims what was not acknowledged after 10 minutes",
            left="local groups = redis.call('xinfo', 'groups', 'taskiq') if #groups == 0 then return 1 end"
            " local found = {} for i = 1, #groups[1], 2 do found[groups[1][i]] = groups[1][i + 1] end"
            " return found['pending'] + (found['lag'] or 1)",
            has_bulk=False,
            versions=("taskiq-redis", "redis"),
        ),
    )
