"""Jobs that belong together are found together."""

from __future__ import annotations

import pytest

from tests.store.builders import a_job, end, enqueue_one, recurring, running
from tests.store.test_executions import ran
from windlass.core.ids import job_uuid
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock


async def family(store: Store) -> list[int]:
    """Enqueue a job, two children, and a grandchild."""
    root = await enqueue_one(store)
    first = await enqueue_one(store, a_job(parent_id=root))
    second = await enqueue_one(store, a_job(parent_id=root))
    return [root, first, second, await enqueue_one(store, a_job(parent_id=second))]


async def test_a_correlation_id_finds_its_jobs_whatever_text_it_is(store: Store) -> None:
    for text in ("user-action-123", "7", "ünï", "%"):
        one = await enqueue_one(store, a_job(correlation_id=text))
        two = await enqueue_one(store, a_job("other", correlation_id=text))
        found = await store.list_by_correlation(text)
        assert ([job.id for job in found.jobs], found.is_complete) == ([one, two], True)
    assert (await store.list_by_correlation("nobody")).jobs == ()


async def test_a_jobs_own_uuid_finds_it_and_its_children(store: Store) -> None:
    root, first, second, _ = await family(store)
    told = await enqueue_one(store, a_job(correlation_id=str(job_uuid(root))))
    for text in (str(job_uuid(root)), str(job_uuid(root)).upper()):
        assert [job.id for job in (await store.list_by_correlation(text)).jobs] == [root, first, second, told]


async def test_very_many_jobs_of_one_correlation_are_cut_off_and_said_to_be(store: Store) -> None:
    await store.enqueue([a_job(correlation_id="c")] * 501)
    found = await store.list_by_correlation("c")
    assert (len(found.jobs), found.is_complete) == (500, False)


async def test_a_tree_is_the_same_from_any_of_its_jobs(store: Store) -> None:
    ids = await family(store)
    await enqueue_one(store)
    for job_id in ids:
        tree = await store.list_tree(job_id)
        assert [(branch.job.id, branch.depth) for branch in tree.branches] == list(zip(ids, [0, 1, 1, 2], strict=True))
        assert tree.is_complete
    assert (await store.list_tree(999)).branches == ()


async def test_a_tree_that_is_too_wide_or_a_circle_ends(store: Store) -> None:
    root = await enqueue_one(store)
    await store.enqueue([a_job(parent_id=root)] * 600)
    tree = await store.list_tree(root)
    assert (len(tree.branches), tree.is_complete) == (500, False)
    itself = await enqueue_one(store, a_job(parent_id=602))
    assert itself == 602
    assert [branch.job.id for branch in (await store.list_tree(itself)).branches] == [602]


@pytest.mark.parametrize("text", ["", "x" * 1001, "a\0b"])
async def test_a_text_that_no_job_could_have_is_refused(store: Store, text: str) -> None:
    with pytest.raises(InvalidInput, match="correlation_id"):
        await store.list_by_correlation(text)


async def test_the_past_of_many_recurring_jobs_is_read_at_once(store: Store, clock: FakeClock) -> None:
    often = await ran(store, clock, 5)
    held = await running(store)
    await end(store, clock, held)
    template, other = [await enqueue_one(store, a_job(recurrence=recurring(), spawn=True)) for _ in range(2)]
    children = [await enqueue_one(store, a_job(parent_id=template)) for _ in range(4)]
    past = await store.read_past([often, held.id, 10**9], [template, other, 10**9], limit=3)
    assert {job: [run.number for run in runs] for job, runs in past.runs.items()} == {often: [3, 4, 5], held.id: [1]}
    assert {parent: [child.id for child in found] for parent, found in past.children.items()} == {template: children[1:]}
    assert {child.state.value for child in past.children[template]} == {"pending"}
    assert await store.read_past([], [], limit=3) == ({}, {})
