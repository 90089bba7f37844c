"""Feeds over HTTP, and the callback of their hubs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.store.builders import a_lease
from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.feed import Feed, Fetched, NewEntry
from windlass.core.job import JobState
from windlass.core.websub import callback_path
from windlass.core.worker import NewWorker
from windlass.errors import ConfigError
from windlass.packs import feeds

URL = "https://example.org/feed.xml"
HUB = "https://hub.example/"
ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def subscribed(web: Served, subscriber: str = "ann", url: str = URL) -> httpx2.Response:
    return await web.ask("POST", "/api/v1/feeds", Role.PRODUCER, json={"url": url, "subscriber": subscriber})


async def test_a_feed_is_subscribed_to_read_and_left(web: Served) -> None:
    made = await subscribed(web)
    assert made.status_code == 201
    feed = made.json()
    assert (feed["url"], feed["subscribers"], feed["consecutive_failures"]) == (URL, 1, 0)
    assert not {"websub_token", "websub_secret"} & feed.keys()
    again = await subscribed(web, "bob")
    assert (again.status_code, again.json()["subscribers"], again.json()["job_id"]) == (200, 2, feed["job_id"])
    listed = (await web.ask("GET", "/api/v1/feeds", Role.VIEWER, params={"subscriber": "bob"})).json()
    assert ([one["id"] for one in listed["feeds"]], listed["total"], listed["next"]) == ([feed["id"]], 1, None)
    shown = (await web.ask("GET", f"/api/v1/feeds/{feed['id']}", Role.VIEWER)).json()
    assert shown == {name: value for name, value in again.json().items() if name != "warning"}
    for name, left in (("ann", 1), ("ann", 1), ("bob", 0)):
        gone = await web.ask("DELETE", f"/api/v1/feeds/{feed['id']}/subscribers/{name}", Role.PRODUCER)
        assert (gone.status_code, gone.json()["subscribers"]) == (200, left)
        assert (gone.json()["next_fetch_at"] is None) == (left == 0)


async def test_subscribing_warns_while_no_worker_has_the_pack(web: Served, caplog: pytest.LogCaptureFixture) -> None:
    warned = (await subscribed(web)).json()["warning"]
    assert "`windlass worker --packs feeds`" in warned
    assert [record.message for record in caplog.records if record.name == "windlass.client.feeds"] == [f"feed 1, {URL}: {warned}"]
    caplog.clear()
    await feeds.subscribe(web.app, f"{URL}?2", "ann")
    assert [record.message for record in caplog.records] == [f"feed 2, {URL}?2: {warned}"]
    caplog.clear()
    await (await web.app.store()).workers.register(NewWorker(id="w", host="h", pid=1, version="1", tasks='["fetch_feed"]'))
    assert (await subscribed(web, "bob")).json()["warning"] is None
    await feeds.subscribe(web.app, URL, "eve")
    assert [record.message for record in caplog.records if record.name == "windlass.client.feeds"] == []


async def test_the_total_is_that_of_the_feeds_asked_for(web: Served) -> None:
    for place, name in enumerate(("ann", "bob", "bob")):
        await subscribed(web, name, f"{URL}?{place}")
    for said, expected in (({}, 3), ({"subscriber": "bob"}, 2), ({"subscriber": "eve"}, 0)):
        listed = (await web.ask("GET", "/api/v1/feeds", Role.VIEWER, params=said)).json()
        assert (len(listed["feeds"]), listed["total"], listed["is_total_exact"]) == (expected, expected, True)


async def test_entries_are_listed_page_by_page(web: Served) -> None:
    feed = (await subscribed(web)).json()
    store = await web.app.store()
    await store.feeds.add_entries(feed["id"], [NewEntry(f"{n}", title=f"<b>{n}</b>") for n in range(5)])
    first = (await web.ask("GET", f"/api/v1/feeds/{feed['id']}/entries", Role.VIEWER, params={"limit": 3})).json()
    assert ([one["title"] for one in first["entries"]], first["total"]) == (["<b>4</b>", "<b>3</b>", "<b>2</b>"], 5)
    params = {"limit": 3, "before": first["next"]}
    rest = (await web.ask("GET", f"/api/v1/feeds/{feed['id']}/entries", Role.VIEWER, params=params)).json()
    assert ([one["guid"] for one in rest["entries"]], rest["next"]) == (["1", "0"], None)


@ON_SQLITE
async def test_what_cannot_be_is_refused(web: Served) -> None:
    for method, path, body, expected in REFUSED:
        answer = await web.ask(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code == expected, (path, answer.text)


REFUSED: list[tuple[str, str, Any, int]] = [
    ("POST", "/api/v1/feeds", {"url": "ftp://example.org", "subscriber": "a"}, 400),
    ("POST", "/api/v1/feeds", {"url": "https://:0/", "subscriber": "a"}, 400),
    ("POST", "/api/v1/feeds", {"url": URL, "subscriber": ""}, 400),
    ("POST", "/api/v1/feeds", {"url": URL, "subscriber": "a\n"}, 400),
    ("POST", "/api/v1/feeds", {"url": URL, "subscriber": "a", "x": 1}, 400),
    ("GET", "/api/v1/feeds/7", None, 404),
    ("GET", "/api/v1/feeds/7/entries", None, 404),
    ("GET", "/api/v1/feeds/x", None, 400),
    ("DELETE", "/api/v1/feeds/7/subscribers/a", None, 404),
]


@pytest.fixture
async def hub(web: Served) -> Feed:
    """Give a feed whose hub was asked and has not answered yet."""
    return await asked_hub(web, URL)


async def asked_hub(web: Served, url: str) -> Feed:
    made = (await subscribed(web, url=url)).json()
    store = await web.app.store()
    await store.promote()
    [held] = await store.claim(await store.slices(), 1, a_lease(), started=True)
    await store.feeds.record_fetch(made["id"], held.token, Fetched([], hub=HUB, topic=url))
    return await store.feeds.ask_websub(made["id"], "unguessable", "shared")


async def verify(web: Served, feed: Feed, mode: str = "subscribe", **others: str) -> httpx2.Response:
    said = {"hub.mode": mode, "hub.topic": URL, "hub.challenge": "<echo>", "hub.lease_seconds": "86400", "other": "x"}
    return await web.ask("GET", callback_path(feed), None, params=said | others)


def signature(body: bytes, secret: str = "shared", method: str = "sha256") -> str:
    return f"{method}={hmac.new(secret.encode(), body, method).hexdigest()}"


async def send(web: Served, feed: Feed, body: bytes, signed: str | None) -> httpx2.Response:
    headers = {"content-type": "application/rss+xml"} | ({} if signed is None else {"x-hub-signature": signed})
    return await web.ask("POST", callback_path(feed), None, content=body, headers=headers)


async def content_jobs(web: Served) -> list[dict[str, Any]]:
    page = await web.app.list()
    return [job.payload for job in page.jobs if job.task == "websub_content"]


async def test_a_hub_that_was_asked_gets_its_challenge_back(web: Served, hub: Feed) -> None:
    answer = await verify(web, hub)
    assert (answer.status_code, answer.text) == (200, "<echo>")
    assert answer.headers["content-type"].startswith("text/plain")
    left = await web.app.feeds.get(hub.id)
    assert left.websub_state == "active"
    assert left.websub_expires_at is not None
    assert abs(left.websub_expires_at - left.updated_at - timedelta(days=1)) < timedelta(seconds=1)


@ON_SQLITE
async def test_what_was_not_asked_for_is_not_confirmed(web: Served, hub: Feed) -> None:
    for said in ({"hub.topic": "https://example.org/other"}, {"mode": "unsubscribe"}, {"mode": "publish"}):
        assert (await verify(web, hub, **said)).status_code == 404
        assert (await web.app.feeds.get(hub.id)).websub_state == "pending"


@ON_SQLITE
async def test_who_does_not_know_the_address_finds_nothing(web: Served, hub: Feed) -> None:
    assert hub.id == 1
    for key in ("1-wrong", "1-", "1", "99-unguessable", "x-unguessable", "-1-unguessable", "1" * 30 + "-x", "1-ü"):
        asked = await web.ask("GET", f"/websub/{key}", None, params={"hub.mode": "subscribe", "hub.topic": URL})
        sent = await web.ask("POST", f"/websub/{key}", None, content=b"x")
        assert (asked.status_code, sent.status_code) == (404, 404), key
        assert "shared" not in asked.text + sent.text


@ON_SQLITE
async def test_a_denied_subscription_is_noted_and_not_confirmed_afterwards(web: Served, hub: Feed) -> None:
    assert (await verify(web, hub, "denied", **{"hub.reason": "no"})).status_code == 200
    assert (await web.app.feeds.get(hub.id)).websub_state == "denied"
    assert (await verify(web, hub)).status_code == 404


@ON_SQLITE
async def test_a_hub_may_end_what_nobody_follows_and_is_told_to_stop_sending(web: Served, hub: Feed) -> None:
    await web.app.feeds.unsubscribe(hub.id, "ann")
    assert (await verify(web, hub)).status_code == 404
    assert (await verify(web, hub, "unsubscribe")).text == "<echo>"
    assert (await send(web, hub, b"x", signature(b"x"))).status_code == 410
    assert await content_jobs(web) == []


async def test_signed_content_becomes_a_job_once(web: Served, hub: Feed) -> None:
    for method in ("sha1", "sha256", "sha384", "sha512", "sha256"):
        assert (await send(web, hub, b"<rss/>", signature(b"<rss/>", method=method))).status_code == 202
    [payload] = await content_jobs(web)
    assert payload == {"feedId": str(hub.id), "body": base64.b64encode(b"<rss/>").decode(), "content_type": "application/rss+xml"}


async def test_a_hub_that_sends_more_makes_the_feeds_own_job_run_and_no_second_content_job(web: Served, hub: Feed) -> None:
    assert (await send(web, hub, b"<rss/>", signature(b"<rss/>"))).status_code == 202
    assert (await web.app.get(hub.job_id or 0)).rerun_at is None
    sent = [b"<rss>%d</rss>" % place for place in range(5)]
    answers = await asyncio.gather(*(send(web, hub, body, signature(body)) for body in sent))
    assert {answer.status_code for answer in answers} == {202}
    assert [base64.b64decode(one["body"]) for one in await content_jobs(web)] == [b"<rss/>"]
    assert (await web.app.get(hub.job_id or 0)).rerun_at is not None


async def test_the_next_content_gets_a_job_again_when_the_last_is_over_and_feeds_have_their_own(web: Served, hub: Feed) -> None:
    other = await asked_hub(web, f"{URL}?other")
    for feed in (hub, other):
        assert (await send(web, feed, b"<rss/>", signature(b"<rss/>"))).status_code == 202
    assert [one["feedId"] for one in await content_jobs(web)] == [str(other.id), str(hub.id)]
    [first] = [job for job in (await web.app.list()).jobs if job.task == "websub_content" and job.subject == str(hub.id)]
    await web.app.cancel(first.id)
    assert (await send(web, hub, b"<rss>2</rss>", signature(b"<rss>2</rss>"))).status_code == 202
    assert [one["feedId"] for one in await content_jobs(web)] == [str(hub.id), str(other.id), str(hub.id)]


@ON_SQLITE
async def test_content_with_a_wrong_signature_is_acknowledged_and_ignored(web: Served, hub: Feed) -> None:
    body = b"<rss/>"
    old = "md5=" + hmac.new(b"shared", body, hashlib.md5).hexdigest()
    for signed in (None, "", "sha256", "sha256=", "sha256=00", old, signature(body, "other"), signature(body, "")):
        assert (await send(web, hub, body, signed)).status_code == 202
        assert await content_jobs(web) == []


@ON_SQLITE
async def test_content_that_fits_no_job_makes_the_feeds_own_job_run(web: Served, hub: Feed) -> None:
    body = b"x" * 900_000
    assert (await send(web, hub, body, signature(body))).status_code == 202
    assert await content_jobs(web) == []
    job = await web.app.get(hub.job_id or 0)
    assert (job.state, job.rerun_at is not None) == (JobState.RUNNING, True)


@pytest.fixture
async def public(url: str) -> AsyncIterator[Served]:
    async with served(Windlass(url, public_url="https://jobs.example.org:8443/base/", **SETTINGS)) as made:
        yield made


@ON_SQLITE
async def test_the_server_answers_to_its_public_name(public: Served) -> None:
    assert public.app.settings.public_url == "https://jobs.example.org:8443/base"
    for host, expected in (("jobs.example.org:8443", 404), ("evil.example", 421)):
        assert (await public.ask("POST", "/websub/1-x", None, headers={"host": host})).status_code == expected


@pytest.mark.parametrize("address", ["jobs.example.org", "ftp://x", "https://", "https://x/?a=b", ""])
def test_a_public_address_must_be_one(address: str) -> None:
    with pytest.raises(ConfigError, match="public_url"):
        _ = Windlass("sqlite://", public_url=address).settings
