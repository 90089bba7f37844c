"""Enqueue: what is accepted is there, exactly as given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, all_jobs, claim, claim_one, end, ending, enqueue_one, recurring, running
from windlass.core.job import SHARED, Enqueued, JobState, OnConflict, UniqueScope, WaitReason
from windlass.core.payload import encode_object
from windlass.errors import DuplicateJob, InvalidInput, InvalidPayload
from windlass.store import Store
from windlass.store.calls import work
from windlass.store.calls.call import Call, Means, Steps
from windlass.testing import FakeClock


async def test_an_immediate_job_is_pending_and_new(store: Store, clock: FakeClock) -> None:
    job = await store.get(await enqueue_one(store))
    assert (job.state, job.wait_reason, job.run_at) == (JobState.PENDING, WaitReason.NEW, clock.now())


async def test_a_delayed_job_is_scheduled_for_the_databases_clock(store: Store, clock: FakeClock) -> None:
    job = await store.get(await enqueue_one(store, a_job(delay=timedelta(minutes=5))))
    assert (job.state, job.wait_reason) == (JobState.SCHEDULED, WaitReason.DELAY)
    assert job.run_at == clock.now() + timedelta(minutes=5)


async def test_every_option_comes_back(store: Store) -> None:
    given = a_job(
        "crawl",
        payload=encode_object({"url": "https://example.org", "π": [1, 2.5, None]}),
        lane="fast",
        priority=7,
        max_attempts=9,
        timeout=timedelta(seconds=90),
        subject="r/python",
        correlation_id="user-action-123",
        target_count=50,
        item_key='["phone"]',
        collection="leads",
        metadata='{"category":"news"}',
        description="Daily crawl",
        created_by="api",
        declared_by="shop",
        name="daily",
        recurrence=recurring(),
        child_key="child",
    )
    job = await store.get(await enqueue_one(store, given))
    for field in ("task", "payload", "lane", "priority", "max_attempts", "subject", "correlation_id", "target_count"):
        assert getattr(job, SHARED[field]) == getattr(given, field)
    for field in ("item_key", "collection", "metadata", "description", "created_by", "declared_by", "name", "child_key"):
        assert getattr(job, SHARED[field]) == getattr(given, field)
    assert job.timeout_us == 90_000_000
    assert job.recurrence == given.recurrence
    assert job.retry == given.retry.encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.0,"b":1e5,"c":-0.0,"d":12345678901234567890}',
        '{"a":"\\u00e9\\/\\ud83d\\ude00","b":"\\"\\\\"}',
        '{"a":{"b":[[],{},[{}]]},"a2":""}',
        '{"emoji":"😀","newline":"\\n"}',
    ],
)
async def test_payload_text_is_kept_to_the_letter(store: Store, text: str) -> None:
    held = await running(store, a_job(payload=text))
    assert held.payload == text
    assert (await store.get(held.id)).payload_json == text


async def test_bulk_answers_in_the_order_of_the_request(store: Store) -> None:
    jobs = [a_job("b" if place % 3 else "a", payload=f'{{"n":{place}}}', priority=place % 2) for place in range(50)]
    answers = await store.enqueue(jobs)
    payloads = [(await store.get(answer.id)).payload_json for answer in answers]
    assert payloads == [job.payload for job in jobs]


async def test_a_large_bulk_is_whole(store: Store) -> None:
    answers = await store.enqueue([a_job(payload=f'{{"n":{place}}}') for place in range(2500)])
    assert len({answer.id for answer in answers}) == 2500
    assert (await store.get(answers[2499].id)).payload_json == '{"n":2499}'


async def test_nothing_to_enqueue_is_nothing(store: Store) -> None:
    assert await store.enqueue([]) == []


async def test_ids_are_never_used_again(store: Store) -> None:
    first = await enqueue_one(store, a_job(unique_key="k"))
    await store.enqueue([a_job(unique_key="k"), a_job()])
    later = await enqueue_one(store)
    assert first < later


@pytest.mark.parametrize("scope", list(UniqueScope))
async def test_a_taken_key_returns_the_holder(store: Store, scope: UniqueScope) -> None:
    first = await enqueue_one(store, a_job(unique_key="k", unique_scope=scope))
    [again] = await store.enqueue([a_job(unique_key="k", unique_scope=scope)])
    assert again == (first, True)


async def test_keys_are_per_task(store: Store) -> None:
    first = await enqueue_one(store, a_job("one", unique_key="k"))
    second = await enqueue_one(store, a_job("two", unique_key="k"))
    assert first != second


async def test_duplicates_inside_one_bulk_lead_to_one_job(store: Store) -> None:
    answers = await store.enqueue([a_job(unique_key="k"), a_job(), a_job(unique_key="k")])
    assert answers[0].id == answers[2].id
    assert [answer.is_duplicate for answer in answers] == [False, False, True]


async def test_a_running_job_frees_a_pending_key_and_keeps_an_active_one(store: Store) -> None:
    await running(store, a_job("loose", unique_key="k", unique_scope=UniqueScope.PENDING))
    [loose] = await store.enqueue([a_job("loose", unique_key="k", unique_scope=UniqueScope.PENDING)])
    assert not loose.is_duplicate
    await claim(store)
    await running(store, a_job("strict", unique_key="k"))
    [strict] = await store.enqueue([a_job("strict", unique_key="k")])
    assert strict.is_duplicate


async def test_a_finished_job_frees_its_key_unless_it_is_forever(store: Store, clock: FakeClock) -> None:
    for scope, is_taken in ((UniqueScope.PENDING, False), (UniqueScope.ACTIVE, False), (UniqueScope.FOREVER, True)):
        job = a_job(scope, unique_key="k", unique_scope=scope)
        held = await running(store, job)
        await end(store, clock, held)
        [again] = await store.enqueue([job])
        assert again.is_duplicate is is_taken
        await store.cancel([again.id])


async def test_reject_names_the_holder_and_writes_nothing(store: Store) -> None:
    holder = await enqueue_one(store, a_job(unique_key="k"))
    with pytest.raises(DuplicateJob, match=f"job {holder}"):
        await store.enqueue([a_job("other"), a_job(unique_key="k", on_conflict=OnConflict.REJECT)])
    assert [job.id for job in await all_jobs(store)] == [holder]


async def test_replace_changes_a_waiting_job(store: Store, clock: FakeClock) -> None:
    holder = await enqueue_one(store, a_job(unique_key="k", payload='{"n":1}'))
    new = a_job(unique_key="k", payload='{"n":2}', priority=9, delay=timedelta(hours=1), on_conflict=OnConflict.REPLACE)
    [answer] = await store.enqueue([new])
    job = await store.get(holder)
    assert answer == (holder, True)
    assert (job.payload_json, job.priority, job.base_priority) == ('{"n":2}', 9, 9)
    assert (job.state, job.wait_reason, job.run_at) == (
        JobState.SCHEDULED,
        WaitReason.DELAY,
        clock.now() + timedelta(hours=1),
    )


async def test_replace_leaves_a_running_job_alone(store: Store) -> None:
    held = await running(store, a_job(unique_key="k", payload='{"n":1}'))
    await store.enqueue([a_job(unique_key="k", payload='{"n":2}', on_conflict=OnConflict.REPLACE)])
    assert (await store.get(held.id)).payload_json == '{"n":1}'


async def test_rerun_makes_a_running_job_run_once_more(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(unique_key="k"))
    await store.enqueue([a_job(unique_key="k", on_conflict=OnConflict.RERUN)])
    await end(store, clock, held)
    await store.promote()
    again = await claim_one(store)
    assert (again.id, again.attempt, again.execution) == (held.id, 1, 2)
    await end(store, clock, again)
    assert (await store.get(held.id)).state is JobState.COMPLETED


async def test_a_name_is_global(store: Store) -> None:
    first = await enqueue_one(store, a_job("one", name="daily", recurrence=recurring()))
    [again] = await store.enqueue([a_job("two", name="daily", recurrence=recurring())])
    assert again == (first, True)


@pytest.mark.parametrize(
    "payload",
    [
        {"a": float("nan")},
        {"a": 1e400},
        {"a": "\0"},
        {"a\0": 1},
        {"a": "\ud800"},
        {"a": "x" * (2 * 1024 * 1024)},
        {1: "a"},
        ["not an object"],
    ],
)
async def test_a_payload_no_database_can_keep_is_refused(store: Store, payload: object) -> None:
    with pytest.raises(InvalidPayload, match="payload"):
        await enqueue_one(store, a_job(payload=encode_object(payload)))
    assert await all_jobs(store) == []


async def test_a_payload_of_depth_1000_is_refused(store: Store) -> None:
    deep: dict[str, object] = {}
    for _ in range(1000):
        deep = {"a": deep}
    with pytest.raises(InvalidPayload, match="payload"):
        await enqueue_one(store, a_job(payload=encode_object(deep)))
    assert await all_jobs(store) == []


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("lane", {"lane": "x" * 300}),
        ("lane", {"lane": ""}),
        ("task", {"task": "x" * 201}),
        ("task", {"task": "a\0b"}),
        ("priority", {"priority": 2**31}),
        ("max_attempts", {"max_attempts": 0}),
        ("delay", {"delay": timedelta(seconds=-1)}),
        ("unique_key", {"unique_key": "x" * 1001}),
        ("correlation_id", {"correlation_id": "\ud800"}),
    ],
)
async def test_bad_options_name_the_field(store: Store, field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        await enqueue_one(store, a_job(**options))
    assert await all_jobs(store) == []


@pytest.mark.parametrize("limit", [0, -1, 1001, True])
async def test_a_claim_limit_out_of_range_is_refused(store: Store, limit: int) -> None:
    await enqueue_one(store)
    with pytest.raises(InvalidInput, match=r"^limit: "):
        await claim(store, limit)


async def test_the_last_of_several_replacements_counts(store: Store) -> None:
    holder = await enqueue_one(store, a_job(unique_key="k"))
    jobs = [a_job(unique_key="k", payload=f'{{"n":{n}}}', on_conflict=OnConflict.REPLACE) for n in range(5)]
    await store.enqueue(jobs)
    assert (await store.get(holder)).payload_json == '{"n":4}'


async def test_a_rerun_whose_holder_has_just_ended_is_a_new_job(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(unique_key="k"))
    call = work.enqueue([a_job(unique_key="k", on_conflict=OnConflict.RERUN)])
    ended: list[object] = []

    def steps(means: Means) -> Steps[list[Enqueued]]:
        """Pretend that the holder ends between the look and the mark, which only PostgreSQL allows."""
        inner = call.steps(means)
        step = next(inner)
        while True:
            answer = yield step
            if step.query == "find_holders" and not ended:
                ended.append((yield from work.finish([ending(held, clock.now())]).steps(means)))
            try:
                step = inner.send(answer)
            except StopIteration as done:
                answers: list[Enqueued] = done.value
                return answers

    [answer] = await store.run(Call(steps))
    assert ended
    assert answer.id != held.id
    assert not answer.is_duplicate


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("payload", {"payload": '{},{"x":1}'}),
        ("payload", {"payload": "[]"}),
        ("metadata", {"metadata": "not json"}),
        ("item_key", {"item_key": "{}"}),
        ("unique_scope", {"unique_key": "k", "unique_scope": UniqueScope.PENDING, "recurrence": recurring()}),
    ],
)
def test_text_that_is_not_one_json_value_is_refused(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        a_job(**options)


async def test_of_two_tasks_under_one_name_the_first_of_the_batch_gets_it(store: Store, clock: FakeClock) -> None:
    jobs = [a_job(task, name="n", recurrence=recurring(), run_at=clock.now()) for task in ("mail", "crawl")]
    answers = await store.enqueue(jobs)
    assert (await store.get(answers[0].id)).task == "mail"
    assert answers[1] == (answers[0].id, True)
