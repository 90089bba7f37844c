# /// script
# requires-python = ">=3.11"
# dependencies = ["dbos"]
# ///
"""DBOS: a queue of durable workflows."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

from dbos import DBOS, DBOSClient
from program import ADDRESS, FILLER, About, Peer, main, note

POLLING_S = 0.05
CONCURRENCY = 100
URL = ADDRESS.replace("postgresql://", "postgresql+psycopg://", 1)
OPTIONS: dict[str, Any] = {"queue_name": "work", "workflow_name": "work"}


@DBOS.workflow(name="work")
async def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


def launch() -> None:
    """Start DBOS; a version of the application is needed for workers and producers to agree."""
    DBOS(
        config={
            "name": "peers",
            "system_database_url": URL,
            "sys_db_pool_size": 20,
            "log_level": "WARNING",
            "application_version": "1",
            "executor_id": str(os.getpid()),
        }
    )
    DBOS.launch()
    DBOS.register_queue("work", worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING_S)


class DbosPeer(Peer):
    """DBOS."""

    async def prepare(self) -> None:
        """Launch once, which makes the tables."""
        await asyncio.to_thread(launch)
        await asyncio.to_thread(DBOS.destroy)

    async def open(self) -> None:
        """Open a client."""
        self._client = DBOSClient(system_database_url=URL)

    async def close(self) -> None:
        """Close it."""
        self._client.destroy()

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        self._client.enqueue(OPTIONS, number, FILLER)

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue in one transaction: there is no bulk call."""
        with self._client._sys_db.engine.begin() as connection:
            for number in numbers:
                self._client.enqueue_in_transaction(connection, OPTIONS, number, FILLER)

    def work(self) -> None:
        """Run the queue until a signal comes."""
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        launch()
        stopped.wait()
        DBOS.destroy()


if __name__ == "__main__":
    main(
        DbosPeer(),
        About(
            title="DBOS",
            package="dbos",
            tuning=f"`worker_concurrency={CONCURRENCY}`, `polling_interval_sec={POLLING_S}` (default 1 s), pool of 20; "
            "no bulk call: 1,000 enqueues in one transaction",
            history="default: every workflow is kept",
            crash="durable workflows: an interrupted one is taken up again by its executor; every commit is synced",
            left="select count(*) from (select 1 from dbos.workflow_status where status in ('ENQUEUED', 'PENDING') limit 1)"
            " as waiting",
            ended="select count(*) from dbos.workflow_status where status = 'SUCCESS'",
            has_bulk=False,
            versions=("psycopg", "sqlalchemy"),
        ),
    )
