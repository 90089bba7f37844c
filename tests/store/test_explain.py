"""Each verdict of an explanation, in the situation that it names."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import (
    a_job,
    a_lease,
    claim,
    claim_one,
    due,
    end,
    enqueue_one,
    fail_for_good,
    failure,
    pending_slot,
    recurring,
    running,
)
from windlass.core.audit import Actor
from windlass.core.explanation import Check, Explanation, Prospect, Situation
from windlass.core.known_task import DeclaredTask
from windlass.core.outcome import Cancelled, Failure, Raised, Snoozed
from windlass.core.payload import encode
from windlass.core.worker import NewWorker
from windlass.errors import GateNotFound, InvalidInput, JobNotFound
from windlass.store import Store
from windlass.testing import FakeClock


async def a_worker(store: Store, name: str = "worker-1", pools: str = '{"*":5}', *tasks: str) -> None:
    """Register a live worker; without tasks it has code for `work`."""
    known = encode(list(tasks or ("work",)))
    await store.workers.register(NewWorker(id=name, host="h", pid=1, version="1", pools=pools, tasks=known))


async def a_puller(store: Store, name: str = "scraper") -> None:
    await store.workers.pulled({name: "127.0.0.1"})


async def do_upkeep(store: Store) -> None:
    """Leave the mark of a process that does the upkeep."""
    await store.chores.due("fold", timedelta(milliseconds=1), "upkeep")


def gate(found: Explanation, name: str) -> Check:
    [check] = [check for check in found.details if check.gate == name]
    return check


async def verdict(store: Store, job_id: int) -> tuple[Situation, str | None]:
    found = await store.explain(job_id)
    return found.verdict, found.command


async def test_an_unknown_job_is_refused(store: Store) -> None:
    for number in (0, -1, 7, 2**63):
        with pytest.raises(JobNotFound, match=str(number)):
            await store.explain(number)


async def test_a_job_waits_for_its_time(store: Store, clock: FakeClock) -> None:
    await do_upkeep(store)
    await a_worker(store)
    at = clock.now() + timedelta(minutes=5)
    job = await enqueue_one(store, a_job(run_at=at))
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("waiting_for_its_time", f"windlass run-now {job}")
    assert found.sentence == "It is not due before 2026-01-15 10:35:00 UTC (in 5 min)."
    assert (found.estimated_start_at, found.position) == (at, None)
    assert [check.gate for check in found.details] == [
        *("state", "due", "upkeep", "lane", "task", "breaker", "code", "worker", "slots", "order"),
    ]
    assert [check.gate for check in found.details if not check.passed] == ["due"]


async def test_what_holds_a_job_back_after_its_time_is_named_too(store: Store, clock: FakeClock) -> None:
    await do_upkeep(store)
    job = await enqueue_one(store, a_job(run_at=clock.now() + timedelta(minutes=5)))
    await store.lanes.pause("default")
    found = await store.explain(job)
    assert found.verdict == "waiting_for_its_time"
    assert "Then: lane default is paused since" in found.sentence


async def test_a_recurring_job_waits_for_its_next_time(store: Store) -> None:
    await do_upkeep(store)
    job = await enqueue_one(store, a_job(recurrence=recurring(), delay=timedelta(minutes=30)))
    found = await store.explain(job)
    assert found.verdict == "waiting_for_its_time"
    assert found.sentence.startswith("It comes back at 2026-01-15 11:00:00 UTC (in 30 min).")


async def test_a_failed_run_waits_for_its_retry_and_its_error_is_told(store: Store, clock: FakeClock) -> None:
    await do_upkeep(store)
    held = await running(store, a_job(max_attempts=3))
    await end(store, clock, held, failure("no route to host 7"))
    found = await store.explain(held.id)
    assert (found.verdict, found.command) == ("retry_wait", f"windlass retry {held.id}")
    assert "Attempt 1 of 3 failed, and it is tried again at 2026-01-15 10:30:01 UTC (in 1 s)." in found.sentence
    assert found.failure is not None
    assert (found.failure.error, found.failure.error_type, found.failure.failed_runs) == ("no route to host 7", "RuntimeError", 1)


async def test_a_handler_put_its_job_off(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, Snoozed(timedelta(minutes=2)))
    assert (await verdict(store, held.id))[0] == "snoozed"


async def test_a_paused_job_is_held(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store, a_job(run_at=clock.now() + timedelta(hours=1)))
    await store.pause([job])
    clock.advance(minutes=3)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("held", f"windlass resume {job}")
    assert found.sentence.startswith("It is paused since 2026-01-15 10:30:00 UTC (3 min).")


async def test_a_due_job_that_nobody_promotes(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store, a_job(delay=timedelta(seconds=1)))
    clock.advance(seconds=2)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("promotion_due_upkeep_not_running", "windlass upkeep")
    assert "no process has ever done any" in found.sentence
    await do_upkeep(store)
    assert await verdict(store, job) == (Situation.PROMOTION_DUE, "windlass chores")
    clock.advance(minutes=5)
    found = await store.explain(job)
    assert found.verdict == "promotion_due_upkeep_not_running"
    assert "the last was done at 2026-01-15 10:30:02 UTC" in found.sentence


async def test_a_due_job_whose_chore_is_paused(store: Store, clock: FakeClock) -> None:
    await do_upkeep(store)
    job = await enqueue_one(store, a_job(delay=timedelta(seconds=1)))
    template = await enqueue_one(store, a_job(recurrence=recurring(), spawn=True, delay=timedelta(seconds=1)))
    clock.advance(seconds=2)
    await store.chores.pause("promote")
    assert await verdict(store, job) == ("chore_paused", "windlass chores resume promote")
    assert await verdict(store, template) == (Situation.PROMOTION_DUE, "windlass chores")
    await store.chores.pause("spawn")
    assert await verdict(store, template) == ("chore_paused", "windlass chores resume spawn")


async def test_a_template_waits_for_its_time_and_for_its_child(store: Store, clock: FakeClock) -> None:
    await do_upkeep(store)
    rule = recurring()
    template = await enqueue_one(store, a_job(recurrence=rule, spawn=True, child_key="k", run_at=clock.now()))
    [child] = await store.spawn()
    found = await store.explain(template)
    assert found.verdict == "waiting_for_its_time"
    assert "It enqueues its next job at" in found.sentence
    assert (gate(found, "unique").passed, gate(found, "unique").command) == (False, f"windlass explain {child.id}")
    assert {check.gate for check in found.details} == {"state", "due", "upkeep", "unique"}


async def test_a_paused_lane_names_who_paused_it(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store, a_job(lane="crawl"))
    await store.acting(Actor("anna")).lanes.pause("crawl")
    clock.advance(minutes=12)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("lane_paused", "windlass lanes resume crawl")
    assert found.sentence == (
        "Lane crawl is paused since 2026-01-15 10:30:00 UTC (12 min) by anna."
        " Then: no worker is alive: none was seen within the last minute."
    )
    await store.lanes.resume("crawl")
    await store.lanes.pause("*")
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("lane_paused", "windlass lanes resume --all")
    assert found.sentence.startswith("Every lane is paused, crawl with them, since")


async def test_a_command_is_written_as_a_shell_reads_it(store: Store) -> None:
    job = await enqueue_one(store, a_job(lane="two words; rm"))
    await store.lanes.pause("two words; rm")
    assert await verdict(store, job) == ("lane_paused", "windlass lanes resume 'two words; rm'")


async def test_a_paused_task(store: Store) -> None:
    job = await enqueue_one(store)
    await store.tasks.pause("work")
    assert await verdict(store, job) == ("task_paused", "windlass tasks resume work")


async def test_an_open_breaker_and_its_next_probe(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    await store.tasks.declare([DeclaredTask(name="work", breaker="mail")])
    job = await enqueue_one(store)
    await store.breakers.force_open("mail", "10m")
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("breaker_open", "windlass breakers reset mail")
    assert "by an operator; it is tried with one job at 2026-01-15 10:40:00 UTC (in 10 min)" in found.sentence
    await store.breakers.force_open("mail")
    assert "until it is reset" in (await store.explain(job)).sentence
    await store.breakers.force_open("mail", "1m")
    clock.advance(minutes=2)
    await a_worker(store)
    assert "the next free slot tries it with one job" in (await store.explain(job)).sentence
    probe = await store.claim_probe(await store.slices(), "mail", a_lease())
    assert probe is not None
    other = await enqueue_one(store)
    found = await store.explain(other)
    assert (found.verdict, found.command) == ("breaker_probing", "windlass breakers reset mail")
    assert f"job {probe.id} tries it now" in found.sentence
    await store.breakers.reset("mail")
    assert (await verdict(store, other))[0] == "next"


async def test_nobody_runs_jobs(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store)
    assert await verdict(store, job) == ("no_live_worker", "windlass worker MODULE:APP")
    await a_worker(store)
    assert (await verdict(store, job))[0] == "next"
    clock.advance(minutes=2)
    assert (await verdict(store, job))[0] == "no_live_worker"
    await a_worker(store)
    await store.workers.stopped("worker-1")
    assert (await verdict(store, job))[0] == "no_live_worker"


async def test_no_live_worker_has_the_code(store: Store) -> None:
    await store.tasks.declare([DeclaredTask(name="work")])
    await a_worker(store, "worker-1", '{"*":5}', "other")
    job = await enqueue_one(store)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("no_worker_knows_task", "windlass worker MODULE:APP")
    assert "none of 1 live worker has code for task work; it was last declared at 2026-01-15" in found.sentence.lower()


async def test_no_live_worker_serves_the_lane(store: Store) -> None:
    await a_worker(store, "worker-1", '{"fast":3}')
    job = await enqueue_one(store, a_job(lane="crawl"))
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("no_worker_serves_lane", "windlass worker MODULE:APP --pools 'crawl=2,*=5'")
    assert gate(found, "code").passed
    fast = await enqueue_one(store, a_job(lane="fast"))
    assert (await verdict(store, fast))[0] == "next"


async def test_the_workers_were_told_to_claim_nothing(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    job = await enqueue_one(store)
    await store.workers.pause("worker-1")
    clock.advance(minutes=5)
    await store.workers.seen("worker-1", 0)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("workers_paused", "windlass workers resume worker-1")
    assert "worker worker-1 would run it and has been told to claim nothing, since 2026-01-15" in found.sentence.lower()
    await a_worker(store, "worker-2", '{"*":5}', "other")
    assert (await verdict(store, job))[0] == "workers_paused"
    await a_worker(store, "worker-3")
    assert (await verdict(store, job))[0] == "next"


async def test_what_pull_workers_take_is_not_known(store: Store) -> None:
    await a_worker(store, "worker-1", '{"fast":3}')
    pulled = await enqueue_one(store, a_job("scrape", lane="pull"))
    other = await enqueue_one(store, a_job("scrape", lane="crawl"))
    assert await verdict(store, pulled) == ("no_worker_serves_lane", "windlass workers")
    assert (await verdict(store, other))[0] == "no_worker_knows_task"
    await a_puller(store)
    for job in (pulled, other):
        found = await store.explain(job)
        assert (found.verdict, found.command) == ("waiting_for_pull_worker", "windlass workers --online")
        assert gate(found, "worker").passed is None
        assert "for which lanes and tasks is not recorded" in found.sentence


async def test_every_slot_is_busy_and_with_what(store: Store, clock: FakeClock) -> None:
    await a_worker(store, "worker-1", '{"fast":1,"*":2}', "work", "crawl")
    await store.enqueue([a_job("crawl") for _ in range(2)])
    assert len(await claim(store)) == 2
    clock.advance(seconds=20)
    job = await enqueue_one(store)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("pool_full", "windlass jobs --state running")
    assert found.sentence == "All 2 slots for lane default are busy: 2 of crawl, the oldest for 20 s."
    assert found.position == 1
    fast = await enqueue_one(store, a_job(lane="fast"))
    assert (await verdict(store, fast))[0] == "next", "lane fast has a slot of its own"
    assert len(await store.claim((await store.slices()).select(lambda part: part.lane == "fast"), 1, a_lease())) == 1
    another = await enqueue_one(store, a_job(lane="fast"))
    assert (await verdict(store, another))[0] == "pool_full"


async def test_claimed_jobs_that_have_not_started_take_no_slot(store: Store) -> None:
    await a_worker(store, "worker-1", '{"*":1}')
    held = await running(store, started=False)
    found = await store.explain(held.id)
    assert (found.verdict, found.command) == ("claimed", None)
    assert found.sentence.startswith("Worker worker-1 holds it ready since 2026-01-15 10:30:00 UTC")
    assert (await verdict(store, await enqueue_one(store)))[0] == "next"


async def test_jobs_of_the_lane_come_before_it(store: Store, clock: FakeClock) -> None:
    await a_worker(store, "worker-1", '{"*":5}', "work", "crawl")
    await store.enqueue([a_job(), a_job("crawl"), a_job("crawl"), a_job(lane="other"), a_job("held")])
    await store.tasks.pause("held")
    clock.advance(seconds=1)
    job = await enqueue_one(store)
    await store.enqueue([a_job(priority=5), a_job()])
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("behind_others", f"windlass boost {job}")
    assert found.sentence == "4 due jobs of lane default come before it: 2 of crawl, 2 of work."
    assert (found.position, found.is_position_exact, found.estimated_start_at) == (5, True, None)
    await store.boost([job], 50)
    assert (await verdict(store, job))[0] == "next"


async def test_jobs_that_its_workers_would_not_take_do_not_come_before_it(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    await store.tasks.declare([DeclaredTask(name="tried", breaker="mail")])
    await store.enqueue([a_job("nobody_has_code"), a_job("tried"), a_job("tried")])
    await store.breakers.force_open("mail", "1s")
    clock.advance(seconds=2)
    found = await store.explain(await enqueue_one(store))
    assert (found.verdict, found.position) == ("next", 1)


async def test_no_more_than_ten_thousand_are_counted_before_it(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    for _ in range(21):
        await store.enqueue([a_job() for _ in range(500)])
    clock.advance(seconds=1)
    found = await store.explain(await enqueue_one(store))
    assert (found.verdict, found.position, found.is_position_exact) == ("behind_others", 10_000, False)
    assert "more than 10000 due jobs of lane default come before it" in found.sentence.lower()


async def test_the_start_is_estimated_by_slots_and_the_length_of_runs(store: Store, clock: FakeClock) -> None:
    await a_worker(store, "worker-1", '{"*":2}')
    for _ in range(3):
        held = await running(store)
        clock.advance(seconds=10)
        assert await end(store, clock, held)
    await a_worker(store, "worker-1", '{"*":2}')
    await store.enqueue([a_job() for _ in range(9)])
    clock.advance(seconds=1)
    found = await store.explain(await enqueue_one(store))
    # Nine before it and itself, 10 s each, two at a time.
    assert found.estimated_start_at == clock.now() + timedelta(seconds=50)


async def test_the_start_is_estimated_by_the_pace_of_the_queue_while_it_waited(store: Store, clock: FakeClock) -> None:
    jobs = [one.id for one in await store.enqueue([a_job() for _ in range(9)])]
    clock.advance(milliseconds=1)
    for _ in range(4):
        held = await claim_one(store)
        clock.advance(minutes=1)
        await end(store, clock, held)
    await a_worker(store)
    found = await store.explain(jobs[-1])
    assert (found.verdict, found.position) == ("behind_others", 5)
    assert found.estimated_start_at is not None
    # One a minute: four before it, and itself.
    assert abs(found.estimated_start_at - clock.now() - timedelta(minutes=5)) < timedelta(seconds=2)


async def test_a_suspect_waits_in_quarantine(store: Store, clock: FakeClock) -> None:
    for _ in range(2):
        await enqueue_one(store)
    assert len(await claim(store, worker="gone")) == 2
    clock.advance(minutes=1)
    first, second = sorted(await store.reclaim())
    await due(store)
    await a_worker(store)
    assert (await verdict(store, first))[0] == "next"
    found = await store.explain(second)
    assert (found.verdict, found.position) == ("quarantine", 2)
    assert "at most 4 such jobs at once in each worker, 0 run now and 1 of its lane come before it" in found.sentence


async def test_a_job_that_is_next(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    job = await enqueue_one(store)
    found = await store.explain(job)
    assert (found.verdict, found.command, found.position) == ("next", None, 1)
    assert found.estimated_start_at == clock.now()
    clock.advance(seconds=30)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("next", "windlass workers --online")
    assert "it has been due for 30 s" in found.sentence


async def test_a_running_job_and_why_it_started_then(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store)
    clock.advance(seconds=90)
    await claim_one(store)
    clock.advance(seconds=5)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("running", f"windlass job {job}")
    assert found.sentence == (
        "It has been running on worker worker-1 for 5 s."
        " It was due when it was enqueued, at 2026-01-15 10:30:00 UTC, and waited 1 min 30 s for a free slot."
    )


async def test_a_running_job_that_is_paused_or_stopped_after_its_run(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.disable([held.id])
    assert "It is paused after this run." in (await store.explain(held.id)).sentence
    await store.stop_run([held.id])
    assert "It was asked to stop." in (await store.explain(held.id)).sentence


async def test_a_running_job_whose_worker_stopped_renewing(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    clock.advance(minutes=1)
    found = await store.explain(held.id)
    assert (found.verdict, found.command) == ("lease_expired", "windlass upkeep")
    assert "has not renewed its lease, which ended at 2026-01-15 10:30:30 UTC" in found.sentence
    await do_upkeep(store)
    assert await verdict(store, held.id) == ("lease_expired", f"windlass take-lease {held.id}")


async def test_a_completed_job_and_why_it_ran_then(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store, a_job(delay=timedelta(seconds=10)))
    clock.advance(seconds=10)
    await due(store)
    held = await claim_one(store)
    clock.advance(seconds=2)
    await end(store, clock, held)
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("completed", None)
    assert found.sentence == (
        "It completed at 2026-01-15 10:30:12 UTC, after a run of 2 s."
        " It was enqueued at 2026-01-15 10:30:00 UTC to run at 2026-01-15 10:30:10 UTC, and started at once."
    )


async def test_a_cancelled_job(store: Store, clock: FakeClock) -> None:
    job = await enqueue_one(store)
    await store.cancel([job], "not needed")
    found = await store.explain(job)
    assert (found.verdict, found.command) == ("cancelled", f"windlass clone {job}")
    assert "(not needed)" in found.sentence
    held = await running(store)
    await end(store, clock, held, Cancelled("its handler said so"))
    assert (await verdict(store, held.id))[0] == "cancelled"
    still = await running(store)
    await store.cancel([still.id])
    assert "has not reported yet" in (await store.explain(still.id)).sentence


async def test_a_job_whose_key_another_has_taken(store: Store, clock: FakeClock) -> None:
    held = await pending_slot(store)
    holder = await enqueue_one(store, a_job(unique_key="k", unique_scope="pending"))
    await end(store, clock, held, failure())
    found = await store.explain(held.id)
    assert (found.verdict, found.command) == ("unique_holder", f"windlass explain {holder}")
    assert f"job {holder} (pending) runs in its place" in found.sentence


async def test_attempts_that_are_used_up(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    found = await store.explain(dead.id)
    [letter] = await store.list_dead_letters(dead.id)
    assert (found.verdict, found.command) == ("attempts_used_up", f"windlass dead show {letter.id}")
    assert found.sentence.startswith(
        "All attempts failed (1 of 1 attempt used). Its error: boom. Whether a retry helps is not known:"
    )
    assert found.failure is not None
    assert (found.failure.error, found.failure.error_type, found.failure.reason) == ("boom", "RuntimeError", "error")
    assert (found.failure.letter_id, found.failure.deaths, found.failure.retry) == (letter.id, 1, Prospect.UNKNOWN)


async def test_a_job_that_failed_for_good_before_its_attempts_were_used_up(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=5))
    await end(store, clock, held, Raised(Failure("no such user", "Discarded"), is_final=True))
    assert (await verdict(store, held.id))[0] == "failed"
    buried = await enqueue_one(store)
    await store.bury([buried], "wrong customer")
    found = await store.explain(buried)
    assert found.verdict == "failed"
    assert "It failed for good. Its error: wrong customer." in found.sentence
    assert "it never ran" in found.sentence


async def test_others_of_the_same_kind_are_counted_with_first_and_last(store: Store, clock: FakeClock) -> None:
    began = clock.now()
    dead: list[int] = []
    for number in range(3):
        held = await running(store, a_job(max_attempts=1))
        await end(store, clock, held, failure(f"row {number} is locked"))
        dead.append(held.id)
        clock.advance(minutes=10)
    other = await running(store, a_job(max_attempts=1))
    await end(store, clock, other, failure("quite another"))
    found = await store.explain(dead[-1])
    assert found.failure is not None
    assert (found.failure.deaths, found.failure.is_deaths_exact) == (3, True)
    assert (found.failure.first_at, found.failure.last_at) == (began, began + timedelta(minutes=20))
    assert (found.failure.retry, found.failure.failed_since) == (Prospect.UNLIKELY, 1)


async def test_a_retry_is_likely_to_help_where_others_that_came_back_completed(store: Store, clock: FakeClock) -> None:
    first, second = [await fail_for_good(store, clock) for _ in range(2)]
    await store.retry([first.id])
    await end(store, clock, await claim_one(store))
    found = await store.explain(second.id)
    assert found.failure is not None
    assert (found.failure.came_back, found.failure.succeeded, found.failure.failed_again) == (1, 1, 0)
    assert (found.failure.retry, found.command) == (Prospect.LIKELY, f"windlass retry {second.id}")
    assert "1 of 1 job that came back after this error completed" in found.sentence
    third = await fail_for_good(store, clock)
    for _ in range(2):
        await store.retry([second.id])
        await end(store, clock, await claim_one(store), failure())
    await store.retry([third.id])
    await end(store, clock, await claim_one(store), failure())
    found = await store.explain(third.id)
    assert found.failure is not None
    assert (found.failure.came_back, found.failure.succeeded, found.failure.failed_again) == (3, 1, 2)
    assert found.failure.retry is Prospect.UNLIKELY


async def test_a_retry_is_likely_to_help_when_the_task_has_succeeded_since(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    clock.advance(minutes=2)
    await end(store, clock, await running(store))
    found = await store.explain(dead.id)
    assert found.failure is not None
    assert (found.failure.retry, found.failure.completed_since) == (Prospect.LIKELY, 1)
    assert found.command == f"windlass retry {dead.id}"


async def test_a_retry_does_not_help_against_an_open_breaker_or_wrong_arguments(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=1))
    await end(store, clock, held, Raised(Failure("to must be text", "InvalidPayload")))
    found = await store.explain(held.id)
    assert found.failure is not None
    assert found.failure.retry is Prospect.UNLIKELY
    assert "InvalidPayload usually comes of the arguments" in found.sentence
    await store.tasks.declare([DeclaredTask(name="work", breaker="mail")])
    await store.breakers.force_open("mail")
    assert "breaker mail is not closed" in (await store.explain(held.id)).sentence


async def test_a_failed_job_whose_key_another_holds(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock, a_job(max_attempts=1, unique_key="k"))
    holder = await enqueue_one(store, a_job(unique_key="k"))
    found = await store.explain(dead.id)
    assert (found.verdict, found.command) == ("attempts_used_up", f"windlass explain {holder}")
    assert (gate(found, "unique").passed, gate(found, "unique").verdict) == (False, "unique_holder")


async def test_a_lane(store: Store) -> None:
    async def lane() -> tuple[Situation, str | None]:
        found = await store.lanes.explain("default")
        assert (found.subject, found.name) == ("lane", "default")
        return found.verdict, found.command

    assert await lane() == ("empty", None)
    await store.enqueue([a_job(), a_job(), a_job("crawl")])
    assert await lane() == ("no_live_worker", "windlass worker MODULE:APP")
    await a_worker(store)
    assert await lane() == ("held_back", "windlass worker MODULE:APP")
    found = await store.lanes.explain("default")
    assert found.sentence.startswith("1 of 2 tasks with due jobs are held back; task crawl, 1 due job: none of 1 live worker")
    await a_worker(store, "worker-1", '{"*":2}', "work", "crawl")
    assert await lane() == ("flowing", None)
    await store.lanes.pause("default")
    assert await lane() == ("lane_paused", "windlass lanes resume default")
    await store.lanes.resume("default")
    assert len(await claim(store, 2)) == 2
    assert await lane() == ("pool_full", "windlass jobs --state running")


async def test_a_task(store: Store) -> None:
    async def task() -> tuple[Situation, str | None]:
        found = await store.tasks.explain("work")
        assert (found.subject, found.name) == ("task", "work")
        return found.verdict, found.command

    await store.tasks.declare([DeclaredTask(name="work", breaker="mail")])
    assert await task() == ("empty", None)
    await store.enqueue([a_job(), a_job(lane="crawl")])
    assert await task() == ("no_live_worker", "windlass worker MODULE:APP")
    await a_worker(store, "worker-1", '{"default":5}')
    assert await task() == ("held_back", "windlass worker MODULE:APP --pools 'crawl=2,*=5'")
    await a_worker(store, "worker-1", '{"*":1}')
    assert await task() == ("flowing", None)
    await store.breakers.force_open("mail")
    assert await task() == ("breaker_open", "windlass breakers reset mail")
    await store.tasks.pause("work")
    assert await task() == ("task_paused", "windlass tasks resume work")
    await store.tasks.resume("work")
    await store.breakers.reset("mail")
    await claim_one(store)
    assert await task() == ("pool_full", "windlass jobs --state running")


async def test_scheduled_jobs_of_a_lane_and_a_task_need_the_upkeep(store: Store) -> None:
    await enqueue_one(store, a_job(delay=timedelta(hours=1)))
    for found in (await store.lanes.explain("default"), await store.tasks.explain("work")):
        assert (found.verdict, found.command) == ("promotion_due_upkeep_not_running", "windlass upkeep")
    await store.chores.pause("promote")
    assert (await store.lanes.explain("default")).command == "windlass chores resume promote"
    await store.chores.resume("promote")
    await do_upkeep(store)
    assert (await store.tasks.explain("work")).verdict == "empty"


async def test_a_task_whose_runs_fail(store: Store, clock: FakeClock) -> None:
    for _ in range(5):
        await fail_for_good(store, clock)
    found = await store.tasks.explain("work")
    assert (found.verdict, found.command) == ("failing", "windlass dead --task work --status open")
    assert "0 runs completed and 5 failed" in found.sentence


async def test_unknown_lanes_and_tasks_are_refused_with_the_nearest_names(store: Store) -> None:
    await enqueue_one(store, a_job("send_mail", lane="letters"))
    with pytest.raises(GateNotFound, match=r"lane 'leters' not found.*did you mean 'letters'"):
        await store.lanes.explain("leters")
    with pytest.raises(GateNotFound, match=r"task 'send_mial' not found.*did you mean 'send_mail'"):
        await store.tasks.explain("send_mial")
    with pytest.raises(InvalidInput, match="lane"):
        await store.lanes.explain("*")
