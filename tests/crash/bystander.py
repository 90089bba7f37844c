"""A process that enqueues when it is told to, and says when."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.crash.child import Ears, say
from windlass.core.job import NewJob
from windlass.store import open_store


@dataclass(frozen=True)
class Options:
    """Where to enqueue."""

    url: str


async def main(options: Options) -> None:
    """Enqueue one job for each word."""
    store = open_store(options.url, rng=Random())
    await store.clock()
    ears = Ears()
    await ears.ready()
    while await ears.hear() == "enqueue":
        [enqueued] = await store.enqueue([NewJob(task="work")])
        say("enqueued", enqueued.id)
    await store.aclose()
