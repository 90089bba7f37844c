"""Explanations from another program."""

from __future__ import annotations

import pytest

from windlass.core.explanation import Explanation, Prospect, Situation
from windlass.core.job import NewJob
from windlass.errors import JobNotFound, NotFound
from windlass.remote import AsyncClient, Client
from windlass.store import Store


async def test_an_explanation_arrives_as_the_record_that_the_application_gives(
    client: Client, aclient: AsyncClient, store: Store
) -> None:
    [made] = await store.enqueue([NewJob(task="mail", lane="letters")])
    await store.bury([made.id], "mailbox full")
    found = client.explain(made.id)
    assert isinstance(found, Explanation)
    assert found.verdict is Situation.FAILED
    assert found.failure is not None
    assert (found.failure.error, found.failure.retry) == ("mailbox full", Prospect.UNKNOWN)
    here = await store.explain(made.id)
    assert (found.sentence, list(found.details), found.failure) == (here.sentence, list(here.details), here.failure)
    assert (await aclient.explain(made.id)).verdict is Situation.FAILED


async def test_lanes_and_tasks_are_explained(client: Client, aclient: AsyncClient, store: Store) -> None:
    await store.enqueue([NewJob(task="scan", lane="paper")])
    await store.lanes.pause("paper")
    assert client.lanes.explain("paper").command == "windlass lanes resume paper"
    assert (await aclient.lanes.explain("paper")).verdict is Situation.LANE_PAUSED
    assert client.tasks.explain("scan").verdict is Situation.LANE_PAUSED
    assert (await aclient.tasks.explain("scan")).subject == "task"


def test_what_is_not_there_is_our_own_error(client: Client) -> None:
    with pytest.raises(JobNotFound):
        client.explain(987654)
    with pytest.raises(NotFound, match="no known name is spelled like it"):
        client.lanes.explain("xyzzy")
    with pytest.raises(NotFound, match="task 'xyzzy' not found"):
        client.tasks.explain("xyzzy")
