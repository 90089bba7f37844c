"""How many workers a lane wants, as KEDA asks for it."""

from __future__ import annotations

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.job import NewJob
from windlass.remote import AsyncClient


async def test_an_autoscaler_reads_how_many_workers_a_lane_wants(web: Served) -> None:
    await (await web.app.store()).enqueue([NewJob(task="mail", lane="mails") for _ in range(7)])
    answer = await web.ask("GET", "/api/v1/scale/mails?slots=2", Role.VIEWER)
    assert answer.status_code == 200
    found = answer.json()
    assert {name: found[name] for name in ("lane", "workers", "slots", "slots_per_worker", "online", "pending", "running")} == {
        "lane": "mails",
        "workers": 4,
        "slots": 7.0,
        "slots_per_worker": 2,
        "online": 0,
        "pending": 7,
        "running": 0,
    }
    every = await web.ask("GET", "/api/v1/scale/*", Role.VIEWER)
    assert (every.json()["slots_per_worker"], every.json()["workers"]) == (8, 1)
    assert (await web.ask("GET", "/api/v1/scale/nobody-knows", Role.VIEWER)).json()["workers"] == 0


async def test_a_bad_length_is_named(web: Served) -> None:
    answer = await web.ask("GET", "/api/v1/scale/mails?within=soon", Role.VIEWER)
    assert (answer.status_code, "within" in answer.json()["error"]) == (400, True)
    assert (await web.ask("GET", "/api/v1/scale/mails?slots=0", Role.VIEWER)).status_code == 400


async def test_the_http_client_reads_the_same(web: Served) -> None:
    await (await web.app.store()).enqueue([NewJob(task="mail", lane="a/b *") for _ in range(3)])
    async with AsyncClient("http://127.0.0.1", web.tokens[Role.VIEWER], transport=web.client._transport) as client:
        found = await client.insights.scale("a/b *", slots=2, within="2m")
    assert (found.lane, found.workers, found.pending) == ("a/b *", 2, 3)
