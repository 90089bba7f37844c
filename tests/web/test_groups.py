"""The first groups of routes, end to end: what is sent comes back, and what is changed is in the database."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.known_task import DeclaredTask
from windlass.core.worker import NewWorker

EVIL = [
    "'; drop table windlass_jobs; --",
    "<script>alert(1)</script>",
    '"}{"',
    "%27 or 1=1",
    "ünï/çødé",
    "a b",
    "{name}",
    "../..",
    "\u202e",
]


async def test_tokens_are_minted_listed_and_revoked(web: Served) -> None:
    made = await web.ask("POST", "/api/v1/tokens", json={"name": "ci", "role": "worker", "lanes": ["pull"], "expires_in": "90d"})
    assert made.status_code == 201
    token = made.json()
    assert (token["role"], token["lanes"], token["is_live"], token["created_by"].endswith(":admin")) == (
        "worker",
        ["pull"],
        True,
        True,
    )
    listed = (await web.ask("GET", "/api/v1/tokens")).json()
    assert (listed["total"], listed["is_total_exact"], listed["tokens"][-1]["name"]) == (6, True, "ci")
    assert token["secret"] not in str(listed)
    assert (await web.ask("GET", "/api/v1/tokens?limit=2&after=1")).json()["next"] == 3
    gone = await web.ask("DELETE", f"/api/v1/tokens/{token['id']}")
    assert (gone.status_code, gone.json()["is_live"]) == (200, False)
    assert (await web.client.get("/api/v1/session", headers={"authorization": f"Bearer {token['secret']}"})).status_code == 401
    assert (await web.ask("DELETE", "/api/v1/tokens/999")).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "role": "root"},
        {"name": "", "role": "viewer"},
        {"name": "a\nb", "role": "viewer"},
        {"name": "x", "role": "viewer", "lanes": ["pull"]},
        {"name": "x", "role": "worker", "lanes": []},
        {"name": "x", "role": "viewer", "expires_in": "soon"},
        {"name": "x", "role": "viewer", "expires_in": 0},
        {"name": "x", "role": "viewer", "digest": "d"},
        {"name": 5, "role": "viewer"},
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_bad_tokens_are_refused(web: Served, body: dict[str, Any]) -> None:
    assert (await web.ask("POST", "/api/v1/tokens", json=body)).status_code == 400
    assert (await web.ask("GET", "/api/v1/tokens")).json()["total"] == 5


async def test_lanes_are_paused_drained_and_resumed(web: Served) -> None:
    paused = await web.ask("POST", "/api/v1/lanes/slow/pause?force=true", Role.OPERATOR)
    assert (paused.json()["is_paused"], paused.json()["is_changed"]) == (True, True)
    drained = (await web.ask("POST", "/api/v1/lanes/slow/drain", Role.OPERATOR)).json()
    assert drained == {"name": "slow", "running": 0, "is_settled": True, "is_done": True}
    [lane] = (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).json()["lanes"]
    assert (lane["name"], lane["is_paused"], lane["counts"]) == ("slow", True, {})
    resumed = await web.ask("POST", "/api/v1/lanes/slow/resume", Role.OPERATOR)
    assert resumed.json()["is_paused"] is False


async def test_tasks_of_the_fleet_are_listed_and_paused(web: Served) -> None:
    await (await web.app.store()).tasks.declare([DeclaredTask(name=name) for name in ("a", "b", "c")])
    first = (await web.ask("GET", "/api/v1/tasks?limit=2", Role.VIEWER)).json()
    assert ([one["name"] for one in first["tasks"]], first["total"], first["next"]) == (["a", "b"], 3, "b")
    rest = (await web.ask("GET", "/api/v1/tasks?after=b&limit=1000000", Role.VIEWER)).json()
    assert ([one["name"] for one in rest["tasks"]], rest["next"]) == (["c"], None)
    assert (await web.ask("POST", "/api/v1/tasks/b/pause", Role.OPERATOR)).json()["is_paused"]
    assert (await web.ask("POST", "/api/v1/tasks/b/drain", Role.OPERATOR)).json()["is_done"]
    assert [one["is_paused"] for one in (await web.ask("GET", "/api/v1/tasks")).json()["tasks"]] == [False, True, False]
    assert not (await web.ask("POST", "/api/v1/tasks/b/resume", Role.OPERATOR)).json()["is_paused"]


async def test_workers_are_listed(web: Served) -> None:
    await (await web.app.store()).workers.register(NewWorker(id="one", host="here", pid=7, version="1", pools='{"*": 5}'))
    listed = (await web.ask("GET", "/api/v1/workers", Role.VIEWER)).json()
    assert (listed["total"], listed["workers"][0]["pools"], listed["workers"][0]["jobs"]) == (1, {"*": 5}, [])


async def test_settings_are_set_and_taken_back(web: Served) -> None:
    path = "/api/v1/settings/BACKOFF_BASE_SEC"
    answer = (await web.ask("PUT", path, json={"value": 45})).json()
    assert (answer["value"], answer["origin"], answer["updated_by"].endswith(":admin")) == (45, "database", True)
    assert (await web.ask("GET", path)).json() == answer
    assert (await web.ask("DELETE", path)).json()["origin"] == "default"
    assert (await web.ask("PUT", "/api/v1/settings/NOTHING", json={"value": 45})).status_code == 404
    assert len((await web.ask("GET", "/api/v1/settings")).json()["settings"]) == 5


async def test_sources_are_kept_by_id(web: Served) -> None:
    body = {"id": "news", "name": "News", "url": "https://example.org/feed", "metadata": {"a": [1, None]}}
    made = await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json=body)
    assert (made.status_code, made.json() | body) == (201, made.json())
    again = await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json={"id": "news", "url": "https://example.org/2"})
    assert (again.status_code, again.json()["url"], again.json()["metadata"]) == (200, "https://example.org/2", {"a": [1, None]})
    unnamed = await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json={"url": "https://host.example/x"})
    assert (unnamed.json()["id"], unnamed.json()["name"]) == ("host.example", "host.example")
    assert (await web.ask("GET", "/api/v1/sources/news", Role.VIEWER)).json() == again.json()
    assert (await web.ask("GET", "/api/v1/sources/none", Role.VIEWER)).status_code == 404
    listed = (await web.ask("GET", "/api/v1/sources?limit=1", Role.VIEWER)).json()
    assert ([one["id"] for one in listed["sources"]], listed["total"], listed["next"]) == (["host.example"], 2, "host.example")
    for url in ("ftp://example.org", "https://", "javascript:alert(1)", "https://a b"):
        assert (await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json={"url": url})).status_code == 400


async def test_the_audit_log_is_read_page_by_page(web: Served) -> None:
    for name in ("a", "b", "c"):
        await web.ask("POST", f"/api/v1/lanes/{name}/pause?force=true", Role.OPERATOR)
    first = (await web.ask("GET", "/api/v1/audit?action=pause%20lane&limit=2")).json()
    assert ([one["target"] for one in first["audit"]], first["total"]) == (["lane:c", "lane:b"], 3)
    rest = (await web.ask("GET", f"/api/v1/audit?action=pause%20lane&before={first['next']}")).json()
    assert ([one["target"] for one in rest["audit"]], rest["next"]) == (["lane:a"], None)
    assert (await web.ask("GET", "/api/v1/audit?since=2999-01-01T00:00:00Z")).json()["audit"] == []


@pytest.mark.parametrize("text", EVIL)
async def test_markup_and_sql_come_back_as_data(web: Served, text: str) -> None:
    body = {"id": text, "name": text, "url": "https://example.org/", "metadata": {text: text}}
    made = await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json=body)
    assert (made.status_code, made.headers["content-type"]) == (201, "application/json")
    assert made.json() | body == made.json()
    from urllib.parse import quote  # noqa: PLC0415 - only here

    assert (await web.ask("GET", f"/api/v1/sources/{quote(text, safe='')}", Role.VIEWER)).json() == made.json()
    paused = await web.ask("POST", f"/api/v1/lanes/{quote(text, safe='')}/pause?force=true", Role.OPERATOR)
    assert paused.json()["name"] == text
    assert text in [one["name"] for one in (await web.ask("GET", "/api/v1/lanes")).json()["lanes"]]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_document_names_every_route_and_its_role(web: Served) -> None:
    document = (await web.ask("GET", "/openapi.json", Role.VIEWER)).json()
    for route in web.server.routes:
        if route.is_page:
            assert route.path not in document["paths"]
            continue
        described = document["paths"][route.path][route.method.lower()]
        assert "422" not in described["responses"]
        assert described["summary"]
        assert ("security" in described) == (route.least is not None)
    assert {"401", "403"} <= set(document["paths"]["/api/v1/lanes"]["get"]["responses"])
