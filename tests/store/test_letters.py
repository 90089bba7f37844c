"""Dead letters: seen once, requeued once."""

from __future__ import annotations

import asyncio

import pytest

from tests.store.builders import a_job, claim, claim_one, due, end, enqueue_one, fail_for_good, failure, recurring, running
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.job import SHARED, Claimed, DeadLetter, JobState, UniqueScope, WaitReason
from windlass.core.job_verbs import Bulk
from windlass.core.letters import LetterFilter, Settled
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, LetterNotFound, LetterSettled, SlotTaken
from windlass.store import Store
from windlass.testing import FakeClock


async def letter_of(store: Store, job_id: int) -> DeadLetter:
    [letter] = await store.list_dead_letters(job_id)
    return letter


async def dead_letter(store: Store, clock: FakeClock, task: str = "work", **options: object) -> DeadLetter:
    return await letter_of(store, (await fail_for_good(store, clock, a_job(task, max_attempts=1, **options))).id)


async def mourned(store: Store, clock: FakeClock) -> Claimed:
    """Let a recurring job die and go on."""
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now(), max_attempts=1))
    await end(store, clock, held, failure())
    return held


async def forget_job(store: Store, job_id: int) -> None:
    """Remove a job as retention does, which lets an acknowledged letter outlive it."""
    for table, column in (("jobs", "id"), ("bodies", "job_id"), ("executions", "job_id")):
        await execute(store, f"delete from windlass_{table} where {column} = {job_id}")


async def test_a_letter_is_acknowledged_once(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    clock.advance(seconds=1)
    seen = (await store.letters.acknowledge([letter.id], by="ann", note="known\0")).one()
    assert (seen.acknowledged_at, seen.acknowledged_by, seen.note) == (clock.now(), "ann", "known\ufffd")
    clock.advance(seconds=1)
    again = await store.letters.acknowledge([letter.id], by="bob")
    assert (again.changed, again.refused) == ((), (seen,))
    with pytest.raises(LetterSettled, match="ann acknowledged it before"):
        again.one()


async def test_letters_that_do_not_exist_are_missing(store: Store) -> None:
    for move in (store.letters.acknowledge([7, 2**70], by="ann"), store.letters.requeue([7, 2**70])):
        settled = await move
        assert settled.missing == (7, 2**70)
        with pytest.raises(LetterNotFound, match="dead letter 7 not found"):
            settled.one()


async def test_nobody_is_not_a_name(store: Store) -> None:
    with pytest.raises(InvalidInput, match=r"^by: "):
        await store.letters.acknowledge([1], by="")


async def test_a_requeue_is_a_fresh_start_of_the_same_job(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock, correlation_id="order 7")
    clock.advance(seconds=1)
    settled = await store.letters.requeue([letter.id])
    [job] = settled.jobs
    assert (job.id, job.state, job.wait_reason, job.run_at) == (
        letter.job_id,
        JobState.PENDING,
        WaitReason.OPERATOR,
        clock.now(),
    )
    assert (job.attempt, job.crashes, job.correlation_id) == (0, 0, "order 7")
    assert (settled.one().closed_reason, settled.one().closed_at) == ("requeued", clock.now())


async def test_a_second_requeue_runs_nothing(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    await store.letters.requeue([letter.id])
    await end(store, clock, await claim_one(store))
    again = await store.letters.requeue([letter.id])
    assert (again.changed, again.jobs) == ((), ())
    with pytest.raises(LetterSettled, match="it was requeued before"):
        again.one()
    assert (await store.get(letter.job_id)).state is JobState.COMPLETED


async def test_an_acknowledged_letter_may_still_be_requeued(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    await store.letters.acknowledge([letter.id], by="ann")
    assert (await store.letters.requeue([letter.id])).one().closed_reason == "requeued"


async def test_a_letter_that_a_retry_closed_is_not_requeued(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    await store.retry([letter.job_id])
    with pytest.raises(LetterSettled, match="it was retried before"):
        (await store.letters.requeue([letter.id])).one()


async def test_a_schedule_that_went_on_runs_now(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    slot = (await store.get(held.id)).slot_at
    letter = await letter_of(store, held.id)
    [job] = (await store.letters.requeue([letter.id])).jobs
    assert (job.state, job.wait_reason, job.slot_at) == (JobState.PENDING, WaitReason.OPERATOR, slot)
    assert (await letter_of(store, held.id)).closed_reason == "requeued"


async def test_a_schedule_that_is_running_runs_once_more(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    letter = await letter_of(store, held.id)
    clock.advance(hours=1)
    await due(store)
    again = await claim_one(store)
    [job] = (await store.letters.requeue([letter.id])).jobs
    assert (job.state, job.rerun_at) == (JobState.RUNNING, clock.now())
    await end(store, clock, again)
    await due(store)
    assert [job.id for job in await claim(store)] == [held.id]


async def test_a_cancelled_schedule_is_not_brought_back(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    await store.cancel([held.id])
    with pytest.raises(LetterSettled, match="has ended in another way"):
        (await store.letters.requeue([(await letter_of(store, held.id)).id])).one()


async def test_all_letters_of_a_job_are_answered_by_one_run(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    first = await letter_of(store, held.id)
    await store.letters.acknowledge([first.id], by="ann")
    clock.advance(hours=1)
    await due(store)
    await end(store, clock, await claim_one(store), failure())
    letters = await store.list_dead_letters(held.id)
    assert len(letters) == 2
    settled = await store.letters.requeue([letter.id for letter in letters])
    assert (len(settled.changed), len(settled.jobs)) == (2, 1)


async def test_a_job_that_is_gone_is_made_again_from_its_letter(store: Store, clock: FakeClock) -> None:
    wish = {
        "lane": "fast",
        "payload": '{"url":"x","n":[1,null,true]}',
        "priority": 7,
        "retry": RetrySpec(profile="crawl", jitter=0.0),
        "unique_key": "k",
        "subject": "s",
        "correlation_id": "c",
        "target_count": 5,
        "item_key": '["phone"]',
        "collection": "people",
        "metadata": '{"m":1}',
        "description": "d",
        "created_by": "ann",
    }
    letter = await dead_letter(store, clock, "crawl", **wish)
    await store.letters.acknowledge([letter.id], by="ann")
    await forget_job(store, letter.job_id)
    [job] = (await store.letters.requeue([letter.id])).jobs
    kept = {name: getattr(job, SHARED[name]) for name in wish if name not in {"retry", "payload"}}
    assert kept == {name: value for name, value in wish.items() if name not in {"retry", "payload"}}
    assert (job.parent_id, job.state, job.max_attempts) == (letter.job_id, JobState.PENDING, 1)
    assert job.payload_json.replace(" ", "") == wish["payload"]
    assert (await store.letters.requeue([letter.id])).changed == ()


async def test_a_schedule_that_is_gone_comes_back_under_its_name(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), name="nightly"))
    await store.bury([job_id], "no")
    letter = await letter_of(store, job_id)
    await forget_job(store, job_id)
    [job] = (await store.letters.requeue([letter.id])).jobs
    assert (job.name, job.recurrence, job.state) == ("nightly", recurring(), JobState.PENDING)


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_requeue_into_a_taken_key_names_the_holder(store: Store, clock: FakeClock, *, is_gone: bool) -> None:
    letter = await dead_letter(store, clock, unique_key="k")
    free = await dead_letter(store, clock)
    holder = await enqueue_one(store, a_job(unique_key="k"))
    if is_gone:
        await forget_job(store, letter.job_id)
    with pytest.raises(SlotTaken, match=f"job {holder}"):
        await store.letters.requeue([letter.id])
    settled = await store.letters.requeue([letter.id, free.id])
    assert [one.id for one in settled.changed] == [free.id]
    assert (await letter_of(store, letter.job_id)).closed_at is None
    await store.letters.acknowledge([letter.id], by="ann")


async def test_a_letter_of_rules_nobody_can_read_is_refused(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock, unique_key="k", unique_scope=UniqueScope.ACTIVE)
    await store.letters.acknowledge([letter.id], by="ann")
    await forget_job(store, letter.job_id)
    text = letter.original_job_json.replace("jitter", "judder")
    await execute(store, f"update windlass_dead_letters set original_job = '{text}'")
    with pytest.raises(LetterSettled, match="cannot be made again"):
        (await store.letters.requeue([letter.id])).one()


@pytest.mark.parametrize("is_gone", [False, True])
async def test_of_many_operators_at_once_one_requeues(store: Store, clock: FakeClock, *, is_gone: bool) -> None:
    for _ in range(4):
        letter = await dead_letter(store, clock)
        if is_gone:
            await forget_job(store, letter.job_id)
        answers = await asyncio.gather(*(store.letters.requeue([letter.id]) for _ in range(4)))
        assert sorted(len(answer.changed) for answer in answers) == [0, 0, 0, 1]
        for held in await claim(store):
            await end(store, clock, held)
        assert await claim(store) == []


async def test_of_a_retry_and_a_requeue_at_once_one_wins(store: Store, clock: FakeClock) -> None:
    for _ in range(8):
        letter = await dead_letter(store, clock)
        moved, settled = await asyncio.gather(store.retry([letter.job_id]), store.letters.requeue([letter.id]))
        assert bool(moved.changed) != bool(settled.changed)
        [held] = await claim(store)
        assert await end(store, clock, held)


async def test_of_a_success_and_a_requeue_at_once_the_letter_is_closed_once(store: Store, clock: FakeClock) -> None:
    for _ in range(8):
        held = await mourned(store, clock)
        letter = await letter_of(store, held.id)
        clock.advance(hours=1)
        await due(store)
        again = await claim_one(store)
        settled, _ = await asyncio.gather(store.letters.requeue([letter.id]), end(store, clock, again))
        assert isinstance(settled, Settled)
        closed = await letter_of(store, held.id)
        assert closed.closed_reason == ("requeued" if settled.changed else "succeeded")
        assert ((await store.get(held.id)).wait_reason is WaitReason.OPERATOR) == bool(settled.changed)
        await store.cancel([held.id])


async def test_letters_are_settled_by_filter(store: Store, clock: FakeClock) -> None:
    letters = [await dead_letter(store, clock, f"task-{place % 2}") for place in range(7)]
    wanted = LetterFilter(task="task-0")
    by_print = LetterFilter(fingerprint=letters[1].fingerprint)
    assert await store.letters.requeue_all(wanted, dry_run=True) == Bulk(4, 0, 0)
    await store.letters.requeue([letters[0].id])
    assert await store.letters.acknowledge_all(wanted, by="ann", batch=2) == Bulk(3, 3, 0)
    assert await store.letters.acknowledge_all(by_print, by="ann") == Bulk(3, 3, 0)
    assert await store.letters.requeue_all(wanted, batch=2) == Bulk(3, 3, 0)
    assert await store.letters.requeue_all(LetterFilter(), batch=2) == Bulk(3, 3, 0)
    assert await store.letters.requeue_all(LetterFilter(is_open=False)) == Bulk(7, 0, 7)
    assert len(await claim(store, 20)) == 7


async def test_letters_are_settled_by_their_numbers(store: Store, clock: FakeClock) -> None:
    letters = [await dead_letter(store, clock, f"task-{place % 2}") for place in range(5)]
    chosen = LetterFilter(ids=(*(one.id for one in letters[:3]), 10**9), is_open=False)
    assert await store.letters.acknowledge_all(chosen, by="ann", dry_run=True) == Bulk(3, 0, 0)
    assert await store.letters.acknowledge_all(chosen, by="ann", batch=2) == Bulk(3, 3, 0)
    assert await store.letters.acknowledge_all(chosen, by="bob") == Bulk(3, 0, 3)
    assert await store.letters.requeue_all(LetterFilter(ids=chosen.ids, task="task-0")) == Bulk(2, 2, 0)
    assert await store.letters.requeue_all(LetterFilter(ids=())) == Bulk()
    for ids in ((0,), (2**63,), tuple(range(1, 10_002))):
        with pytest.raises(InvalidInput, match="ids"):
            LetterFilter(ids=ids)


async def test_what_is_done_to_letters_is_audited(store: Store, clock: FakeClock) -> None:
    letter = await dead_letter(store, clock)
    acting = store.acting(Actor("ann"))
    await acting.letters.acknowledge([letter.id], by="ann")
    await acting.letters.acknowledge([letter.id], by="ann")
    await acting.letters.requeue_all(LetterFilter())
    rows = await execute(store, "select action, target, outcome from windlass_audit order by id")
    assert rows == [
        ("acknowledge", f"letter:{letter.id}", "done"),
        ("acknowledge", f"letter:{letter.id}", "refused"),
        ("requeue", "letters", "done"),
    ]
