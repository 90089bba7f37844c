"""A process that enqueues the same unique keys at the same moments as its rivals."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from random import Random

from tests.crash.child import Ears, say
from windlass.core.job import Enqueued, NewJob, UniqueScope
from windlass.store import Store, open_store

ROUND_S = 0.05


@dataclass(frozen=True)
class Options:
    """How to race: `callers` connections; each round brings the keys that all share and some of the caller's own."""

    url: str
    name: str
    scope: str
    callers: int
    rounds: list[list[str]]
    own: list[int]


async def race(store: Store, caller: int, options: Options, begin_s: float) -> list[dict[str, Enqueued]]:
    """Enqueue round after round, each begun at an instant that all rivals agree on."""
    rng = Random(f"{options.name}-{caller}")
    answers: list[dict[str, Enqueued]] = []
    for turn, (shared, own) in enumerate(zip(options.rounds, options.own, strict=True)):
        keys = shared + [f"{options.name}-{caller}-{turn}-{number}" for number in range(own)]
        rng.shuffle(keys)
        jobs = [NewJob(task="race", unique_key=key, unique_scope=UniqueScope(options.scope)) for key in keys]
        await asyncio.sleep(begin_s + turn * ROUND_S - time.time())
        answers.append(dict(zip(keys, await store.enqueue(jobs), strict=True)))
    return answers


async def main(options: Options) -> None:
    """Race and report every answer."""
    stores = [open_store(options.url, rng=Random()) for _ in range(options.callers)]
    for store in stores:
        await store.clock()
    ears = Ears()
    await ears.ready()
    begin_s = float(await ears.hear())
    say("answers", await asyncio.gather(*(race(store, caller, options, begin_s) for caller, store in enumerate(stores))))
    for store in stores:
        await store.aclose()
