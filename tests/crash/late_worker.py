"""A worker that claims, is held up for too long and then goes on as if nothing had happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.crash.child import Ears, say
from tests.crash.worker import Running, new_lease, within
from windlass.core.job import Claimed
from windlass.core.outcome import Failure, Outcome, Raised, Released, Returned, Run, decide
from windlass.errors import LeaseLost
from windlass.store import Store, open_store

ENDINGS: dict[str, Outcome] = {
    "finish": Returned('"late"'),
    "fail": Raised(Failure("late")),
    "release": Released(has_started=True),
}


@dataclass(frozen=True)
class Options:
    """What to claim, and which verbs to try afterwards on every job, in order."""

    url: str
    name: str
    lease_s: float
    jobs: int
    verbs: list[str]


async def attempt(store: Store, verb: str, running: Running, lease_s: float) -> str:
    """Try one verb and say what the store answered."""
    job = running.job
    if verb == "renew":
        held = await store.renew([running.lease], timedelta(seconds=lease_s))
        return "lost" if not held else "should stop" if held[0].should_stop else "kept"
    if verb == "progress":
        try:
            await store.progress(job.id, job.token, count=99, cursor="late", message="late")
        except LeaseLost:
            return "lost"
        return "kept"
    if verb == "stop":
        return "kept" if await store.stop([(job.id, job.token, Run(running.started_at))]) else "lost"
    ending = decide(job, ENDINGS[verb], Run(running.started_at, running.now()), now=running.now(), rng=Random())
    return "kept" if await store.finish([ending]) else "lost"


async def claim(store: Store, options: Options) -> list[Claimed]:
    """Take the jobs of the lane that carries this worker's name."""
    found = within(await store.slices(), {options.name})
    return await store.claim(found, options.jobs, new_lease(options.name, options.lease_s), started=True)


async def main(options: Options) -> None:
    """Claim, wait for the word, try."""
    store = open_store(options.url, rng=Random())
    ears = Ears()
    await ears.ready()
    claimed = [Running(job) for job in await claim(store, options)]
    for running in claimed:
        running.started_at = running.now()
    say("claimed", [running.job.id for running in claimed])
    assert await ears.hear() == "go on"
    for running in claimed:
        answers = {verb: await attempt(store, verb, running, options.lease_s) for verb in options.verbs}
        say("tried", [running.job.id, answers])
    await store.aclose()
