"""A worker that is killed at one named point of its work on three jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.crash.child import Ears
from tests.crash.saboteur import Moment, Saboteur
from tests.crash.worker import Running, new_lease, take, within
from windlass.core.job import Held
from windlass.core.outcome import Failure, Finish, Outcome, Raised, Released, Returned, Run, Stopped, decide
from windlass.store import Store, open_store
from windlass.store.calls.call import Means

JOBS = 3


@dataclass(frozen=True)
class Options:
    """Where to die, and the script that leads there."""

    url: str
    lane: str
    lease_s: float
    script: str
    place: str
    moment: str
    occurrence: int


class DoomedWorker:
    """Plays one script; every one ends in death."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._length = timedelta(seconds=options.lease_s)
        # Whoever cancels or stops a job is another party, and survives.
        self._operator = open_store(options.url, rng=Random())
        self._saboteur = Saboteur(self._operator.database, options.place, Moment(options.moment), options.occurrence)
        self._store = Store(self._saboteur, Means(Random()))

    async def connect(self) -> None:
        await self._operator.clock()

    async def play(self) -> None:
        if self._options.script == "reclaim":
            await self._reclaim()
        claimed = await self._claim(self._options.lease_s)
        assert len(claimed) == JOBS
        match self._options.script:
            case "run":
                await self._run(claimed)
            case "batch":
                await self._run_together(claimed)
            case "fail":
                await self._start(claimed, 0)
                await self._end(self._decided(claimed[0], Raised(Failure("broken"), after=timedelta())))
            case "release":
                await self._release(claimed)
            case "cancel":
                await self._be_cancelled(claimed)
            case "stop":
                await self._be_stopped(claimed)
        raise AssertionError(f"survived {self._options.place} {self._options.moment}")

    async def _claim(self, lease_s: float) -> list[Running]:
        found = within(await self._store.slices(), {self._options.lane})
        lease = new_lease(f"doomed {self._options.lane}", lease_s)
        return [Running(job) for job in await take(self._store, found, JOBS, lease, started=False)]

    async def _reclaim(self) -> None:
        """Let leases end at once and take them back, until it is this worker and not a healthy one that is first to do so."""
        while True:
            await self._claim(0.001)
            await self._store.reclaim()
            await self._operator.promote()

    async def _run(self, claimed: list[Running]) -> None:
        """Run one after the other, each reported, finished before the next."""
        for place, running in enumerate(claimed):
            await self._start(claimed, place)
            await self._store.progress(running.job.id, running.job.token, count=1, cursor="half-way")
            self._saboteur.reach("handled")
            ending = self._decided(running, Returned())
            self._saboteur.reach("decided")
            await self._end(ending)

    async def _run_together(self, claimed: list[Running]) -> None:
        for place in range(JOBS):
            await self._start(claimed, place)
        await self._end(*(self._decided(running, Returned()) for running in claimed))

    async def _release(self, claimed: list[Running]) -> None:
        """Shut down with one job done, one under way and one not begun."""
        await self._start(claimed, 0)
        await self._end(self._decided(claimed[0], Returned()))
        await self._start(claimed, 1)
        await self._end(self._decided(claimed[1], Released(has_started=True)), self._decided(claimed[2], Released()))

    async def _be_cancelled(self, claimed: list[Running]) -> None:
        await self._start(claimed, 0)
        await self._operator.cancel([claimed[0].job.id])
        [held, *_] = await self._start(claimed, 0)
        assert held.is_cancelled
        self._saboteur.reach("stop seen")
        running = claimed[0]
        assert await self._store.stop([(running.job.id, running.job.token, Run(started_at=running.started_at))])

    async def _be_stopped(self, claimed: list[Running]) -> None:
        await self._start(claimed, 0)
        await self._operator.stop_run([claimed[0].job.id])
        [held, *_] = await self._start(claimed, 0)
        assert held.should_stop
        self._saboteur.reach("stop seen")
        await self._end(self._decided(claimed[0], Stopped()))

    async def _start(self, claimed: list[Running], place: int) -> list[Held]:
        """Report that a job has started, and renew the rest of the batch with it."""
        claimed[place].started_at = claimed[place].started_at or claimed[place].now()
        held = await self._store.renew([running.lease for running in claimed[place:]], self._length)
        assert len(held) == len(claimed[place:]), "the machine is so slow that the lease ended before the named point"
        return sorted(held)

    def _decided(self, running: Running, outcome: Outcome) -> Finish:
        now = running.now()
        return decide(running.job, outcome, Run(running.started_at, now), now=now, rng=Random())

    async def _end(self, *endings: Finish) -> None:
        assert len(await self._store.finish(endings)) == len(endings)


async def main(options: Options) -> None:
    """Play the script to its deadly end."""
    doomed = DoomedWorker(options)
    await doomed.connect()
    await Ears().ready()
    await doomed.play()
