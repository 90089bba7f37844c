"""A process that claims and finishes as fast as it can until nothing is left."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.crash.child import Ears, say
from tests.crash.worker import Running, new_lease
from windlass.core.outcome import Returned, Run, decide
from windlass.store import Store, open_store


@dataclass(frozen=True)
class Options:
    """Where to drain, and how many jobs to take at a time."""

    url: str
    name: str
    batch: int


async def drain(store: Store, options: Options) -> list[int]:
    """Run everything that is pending; returns the jobs that were run. Any error ends the process, and so fails the test."""
    ran: list[int] = []
    while (found := await store.slices()).open:
        claimed = await store.claim(found, options.batch, new_lease(options.name, 600), started=False)
        if not claimed:
            continue
        clock = Running(claimed[0])
        run = Run(started_at=clock.now(), finished_at=clock.now())
        endings = [decide(job, Returned(), run, now=clock.now(), rng=Random()) for job in claimed]
        ran += [job.id for job in claimed]
        accepted = await store.finish(endings)
        assert len(accepted) == len(claimed), "a finish was refused although the lease holds for minutes"
    return ran


async def main(options: Options) -> None:
    """Drain and report what was run."""
    store = open_store(options.url, rng=Random())
    await store.clock()
    await Ears().ready()
    say("ran", await drain(store, options))
    await store.aclose()
