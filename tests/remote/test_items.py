"""Items through the HTTP client."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from windlass.core.job import Lease, NewJob, Slices
from windlass.errors import InvalidInput, JobNotFound
from windlass.remote import AsyncClient, Client
from windlass.store import Store


async def test_items_are_read_in_pages_one_after_another_and_as_text(client: Client, aclient: AsyncClient, store: Store) -> None:
    items = [{"place": place} for place in range(601)]
    [job] = await store.enqueue([NewJob(task="finds", lane="pull", item_key="[]")])
    found = await store.slices()
    mine = Slices(found.version, tuple(part for part in found.open if part.task == "finds"))
    held = await store.pull(mine, Lease(11, "finder", timedelta(seconds=60)))
    assert held is not None
    for part in (items[:400], items[400:]):
        await store.items.add(held.id, held.token, part)
    page = client.items.page(job.id, limit=2)
    assert ([item.data for item in page.items], page.total, page.next) == (items[:2], 601, page.items[-1].id)
    assert [item.data for item in client.items.list(job.id)] == items
    assert [item.data async for item in aclient.items.list(collection="finds", after=page.items[0].id)] == items[1:]
    text = "".join(client.items.export(collection="finds"))
    assert [json.loads(line) for line in text.splitlines()] == items
    assert "".join([part async for part in aclient.items.export(job.id, kind="csv")]).splitlines()[:2] == ["place", "0"]
    with pytest.raises(JobNotFound):
        list(client.items.export(10**9))
    with pytest.raises(InvalidInput, match="not both"):
        client.items.page()
