"""How many workers a lane wants."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim, enqueue_one
from tests.store.test_insights import run_one
from windlass.core.gate import ALL_LANES
from windlass.core.known_task import DeclaredTask
from windlass.core.pool import parse_pools
from windlass.core.worker import NewWorker
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock


async def fill(store: Store, lane: str, jobs: int, task: str = "work") -> None:
    await store.enqueue([a_job(task, lane=lane) for _ in range(jobs)])


async def register(store: Store, name: str, pools: str) -> None:
    await store.workers.register(NewWorker(id=name, host="h", pid=1, version="1", pools=pools))


async def test_an_empty_lane_wants_no_worker(store: Store) -> None:
    found = await store.insights.scale("mail")
    assert (found.workers, found.slots, found.online, found.run_seconds) == (0, 0, 0, None)


async def test_jobs_nothing_is_known_of_want_a_slot_each(store: Store) -> None:
    await fill(store, "mail", 9)
    found = await store.insights.scale("mail", slots=4)
    assert (found.workers, found.slots, found.pending) == (3, 9.0, 9)


async def test_short_jobs_want_the_part_of_a_slot_that_works_them_off_in_time(store: Store, clock: FakeClock) -> None:
    await run_one(store, clock, "work", "mail", 600)
    clock.advance(minutes=4)
    await fill(store, "mail", 1000)
    found = await store.insights.scale("mail", slots=5)
    assert found.run_seconds == pytest.approx(0.6)
    # 1,000 jobs of 0.6 s within 60 s are 10 slots; those that came are 3.33 a second, and 0.6 s each.
    assert found.slots == pytest.approx(10 + 0.6 * found.in_per_second, abs=0.001)
    assert found.in_per_second == pytest.approx(3.33, abs=0.01)
    assert found.workers == 3
    # In twice the time half of the slots work the backlog off; what keeps coming wants the same as before.
    slower = await store.insights.scale("mail", slots=5, within=timedelta(minutes=2))
    assert found.slots - slower.slots == pytest.approx(5, abs=0.01)


async def test_runs_that_take_long_keep_their_slots(store: Store, clock: FakeClock) -> None:
    await run_one(store, clock, "work", "mail", 120_000)
    clock.advance(minutes=30)
    await fill(store, "mail", 3)
    assert len(await claim(store, 2)) == 2
    found = await store.insights.scale("mail", slots=1)
    assert (found.running, found.pending) == (2, 1)
    assert found.workers == 3


async def test_what_a_gate_holds_back_wants_no_worker(store: Store, clock: FakeClock) -> None:
    await fill(store, "mail", 4)
    await fill(store, "mail", 2, "other")
    assert (await store.insights.scale("mail", slots=1)).workers == 6
    await store.tasks.pause("other")
    assert (await store.insights.scale("mail", slots=1)).workers == 4
    await store.lanes.pause("mail")
    assert (await store.insights.scale("mail", slots=1)).workers == 0
    await store.lanes.resume("mail")
    await store.lanes.pause(ALL_LANES)
    assert (await store.insights.scale(ALL_LANES, slots=1)).workers == 0
    await store.lanes.resume(ALL_LANES)
    await store.tasks.declare([DeclaredTask(name="work", breaker="smtp")])
    await store.breakers.force_open("smtp", timedelta(minutes=1))
    await store.tasks.resume("other")
    assert (await store.insights.scale("mail", slots=1)).workers == 2
    # A breaker that is due lets one job through.
    clock.advance(minutes=2)
    assert (await store.insights.scale("mail", slots=1)).workers == 3


async def test_a_star_is_every_lane_but_pull(store: Store) -> None:
    for lane in ("mail", "slow", "pull"):
        await fill(store, lane, 2)
    assert (await store.insights.scale(ALL_LANES, slots=1)).workers == 4
    assert (await store.insights.scale("pull", slots=1)).workers == 2


async def test_slots_are_those_that_workers_have_or_that_were_planned(store: Store, clock: FakeClock) -> None:
    await fill(store, "mail", 8)
    assert (await store.insights.scale("mail")).slots_per_worker == 5
    assert (await store.insights.scale("mail", pools=parse_pools("mail=4"))).workers == 2
    await register(store, "one", '{"mail": 2, "*": 5}')
    await register(store, "two", '{"slow": 3}')
    found = await store.insights.scale("mail")
    assert (found.online, found.slots_per_worker, found.workers) == (1, 2, 4)
    assert (await store.insights.scale(ALL_LANES)).slots_per_worker == 5
    assert (await store.insights.scale("pull")).slots_per_worker == 1
    clock.advance(hours=1)
    assert (await store.insights.scale("mail")).online == 0


async def test_a_job_that_is_not_due_wants_no_worker_before_its_time(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(lane="mail", run_at=clock.now() + timedelta(hours=1)))
    assert (await store.insights.scale("mail", slots=1)).workers == 0
    clock.advance(hours=1)
    await store.promote()
    assert (await store.insights.scale("mail", slots=1)).workers == 1


@pytest.mark.parametrize(
    ("wrong", "said"), [({"slots": 0}, "slots"), ({"within": timedelta()}, "within"), ({"lane": ""}, "lane")]
)
async def test_what_makes_no_sense_is_refused(store: Store, wrong: dict[str, object], said: str) -> None:
    arguments = {"lane": "mail"} | wrong
    with pytest.raises(InvalidInput, match=said):
        await store.insights.scale(**arguments)  # type: ignore[arg-type]  # wrong on purpose
