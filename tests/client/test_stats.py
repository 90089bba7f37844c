from __future__ import annotations

from datetime import timedelta
from random import Random

from windlass import Windlass
from windlass.core.job import Lease
from windlass.core.outcome import Failure, Raised, decide
from windlass.core.runs import QueueStats


def numbers(stats: QueueStats) -> tuple[int, int, int, int, int]:
    return stats.pending, stats.processing, stats.failed, stats.scheduled, stats.oldest_pending_minutes


async def test_the_queue_in_five_numbers(app: Windlass) -> None:
    @app.task
    def note(number: int) -> None: ...

    assert numbers(app.stats_sync()) == (0, 0, 0, 0, 0)
    await note.enqueue_many([{"number": number} for number in range(4)])
    await note.using(delay="1h").enqueue(5)
    store = await app.store()
    lease = Lease(7, "me", timedelta(seconds=20))
    [failing, _] = await store.claim(await store.slices(), 2, lease)
    await store.finish([decide(failing, Raised(Failure("boom", "OSError")), now=await store.clock(), rng=Random(1))])
    assert numbers(await app.stats()) == (2, 1, 1, 1, 0)
