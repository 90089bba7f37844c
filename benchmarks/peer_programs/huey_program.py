# /// script
# requires-python = ">=3.11"
# dependencies = ["huey"]
# ///
"""Huey on SQLite."""

from __future__ import annotations

import logging

from huey import SqliteHuey
from program import ADDRESS, FILLER, VARIANT, About, Peer, main, note

WORKERS = 2
DELAY_S = 0.01
IS_SYNCED = VARIANT == "synced"
huey = SqliteHuey("peers", filename=ADDRESS.removeprefix("sqlite:///") or ":memory:", results=False, fsync=IS_SYNCED)


@huey.task(name="work")
def work(number: int, filler: str) -> None:
    """Do nothing."""
    note(number)


class HueyPeer(Peer):
    """Huey; importing this has made the tables."""

    async def enqueue(self, number: int) -> None:
        """Enqueue one."""
        work(number=number, filler=FILLER)

    def work(self) -> None:
        """Run a consumer."""
        logging.getLogger("huey").setLevel(logging.WARNING)
        huey.create_consumer(workers=WORKERS, worker_type="thread", initial_delay=DELAY_S, max_delay=DELAY_S, backoff=1).run()


if __name__ == "__main__":
    main(
        HueyPeer(),
        About(
            title="Huey, SQLite" if IS_SYNCED else "Huey, SQLite, fsync=False",
            package="huey",
            tuning=f"{WORKERS} worker threads, polls every {DELAY_S * 1000:.0f} ms (default 100 ms, backing off to 10 s), WAL, "
            + ("`fsync=True`, which is SQLite's own default" if IS_SYNCED else "`fsync=False`")
            + ", `results=False`; no bulk call",
            history="default: none; a job is deleted when it is taken",
            crash="at most once: a job is gone from the file before it runs, so a worker's crash loses it; "
            + ("every commit is synced" if IS_SYNCED else "nothing is synced: a crash of the machine may lose or break the file"),
            left="select count(*) from (select 1 from task limit 1)",
            has_bulk=False,
        ),
    )
