"""Hubs are found, asked, renewed, and what they send is kept."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.packs.feed_site import Reply, Site, a_site, feed, rss, status
from tests.support.stores import fresh_url
from tests.web.serving import Served, served
from windlass import Windlass, packs
from windlass.core.feed import Feed
from windlass.core.job import JobState
from windlass.core.websub import RENEW_WITHIN
from windlass.packs import feeds
from windlass.testing import run_all

PUBLIC = "https://jobs.example.org/base"
ON_SQLITE = pytest.mark.parametrize("web", ["sqlite-file"], indirect=True)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as made:
        made.pages["/hub"] = status(202)
        yield made


@pytest.fixture(params=["sqlite-file", "postgres"])
async def web(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """Give a server with the pack that hubs can reach."""
    with ExitStack() as stack:
        postgres = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        url = stack.enter_context(fresh_url(request.param, tmp_path, postgres))
        app = Windlass(url, allow_private_addresses=True, public_url=PUBLIC)
        packs.install(app, ["feeds"])
        async with served(app) as made:
            yield made


async def fetched(app: Windlass, site: Site) -> Feed:
    made = await feeds.subscribe(app, site.url("/feed"), "ann")
    await app.run_now(made.job_id or 0)
    await run_all(app)
    return await app.feeds.get(made.id)


def asked(site: Site) -> list[dict[str, Any]]:
    """Read what the hub was asked for."""
    forms = [parse_qs(one.body.decode()) for one in site.seen if one.path == "/hub" and one.method == "POST"]
    return [{name: value for name, [value] in form.items()} for form in forms]


async def agree(web: Served, said: dict[str, Any], lease: int = 864_000) -> None:
    """Answer a request as a hub does, by calling back."""
    path = said["hub.callback"].removeprefix(PUBLIC)
    params = {"hub.mode": "subscribe", "hub.topic": said["hub.topic"], "hub.challenge": "c", "hub.lease_seconds": str(lease)}
    answer = await web.ask("GET", path, None, params=params)
    assert (answer.status_code, answer.text) == (200, "c")


async def test_a_hub_is_found_asked_and_agrees_and_its_content_is_kept(web: Served, site: Site) -> None:
    site.pages["/feed"] = feed(1, extra=f'<atom:link rel="hub" href="{site.url("/hub")}"/>')
    left = await fetched(web.app, site)
    [said] = asked(site)
    assert (said["hub.mode"], said["hub.topic"], left.websub_state) == ("subscribe", site.url("/feed"), "pending")
    assert said["hub.callback"].startswith(f"{PUBLIC}/websub/{left.id}-")
    await agree(web, said)
    assert (await web.app.feeds.get(left.id)).websub_state == "active"
    # Neither the next fetch nor the renewal asks again.
    await fetched(web.app, site)
    await web.app.enqueue("renew_websub")
    await run_all(web.app)
    assert len(asked(site)) == 1
    payload = {"feedId": str(left.id), "body": base64.b64encode(rss(1, 2)).decode(), "content_type": None}
    sent = await web.app.enqueue("websub_content", payload)
    await run_all(web.app)
    assert (await web.app.get(sent.id)).state is JobState.COMPLETED
    assert [one.guid for one in await web.app.feeds.entries(left.id)] == ["2", "1"]


@ON_SQLITE
async def test_a_hub_in_the_headers_counts_too(web: Served, site: Site) -> None:
    link = f'<{site.url("/hub")}>; rel="hub", <https://example.org/self>; rel="self"'
    site.pages["/feed"] = feed(1, link=link)
    await fetched(web.app, site)
    assert [said["hub.topic"] for said in asked(site)] == ["https://example.org/self"]


@ON_SQLITE
async def test_what_ends_within_a_day_is_renewed_with_the_same_secrets(web: Served, site: Site) -> None:
    site.pages["/feed"] = feed(1, link=f"<{site.url('/hub')}>; rel=hub")
    left = await fetched(web.app, site)
    await agree(web, asked(site)[0], int(RENEW_WITHIN.total_seconds()) - 60)
    await web.app.enqueue("renew_websub")
    await run_all(web.app)
    first, second = asked(site)
    assert first == second
    await agree(web, second)
    renewed = await web.app.feeds.get(left.id)
    assert renewed.websub_expires_at is not None
    assert renewed.websub_expires_at - renewed.updated_at > timedelta(days=9)


@ON_SQLITE
async def test_a_hub_that_fails_fails_the_renewal_and_not_the_feed(web: Served, site: Site) -> None:
    site.pages |= {"/feed": feed(1, link=f"<{site.url('/hub')}>; rel=hub"), "/hub": status(500)}
    left = await fetched(web.app, site)
    assert (left.consecutive_failures, left.websub_state) == (0, "pending")
    renewal = await web.app.ensure("renewal", "renew_websub", cadence=timedelta(days=1), run_at=left.created_at)
    await run_all(web.app)
    job = await web.app.get(renewal.id)
    assert (job.consecutive_failures, job.state) == (1, JobState.SCHEDULED)
    assert f"1 of 1 hubs did not take it, as feed {left.id}: {site.url('/hub')} answered 500" in (job.last_error or "")


@ON_SQLITE
@pytest.mark.parametrize("payload", [{"feedId": "9", "body": ""}, {"feedId": "1", "body": "AAAA"}, {"feedId": "1", "body": "!"}])
async def test_content_that_is_no_feed_is_a_dead_letter(web: Served, site: Site, payload: dict[str, str]) -> None:
    site.pages["/feed"] = feed(1)
    await fetched(web.app, site)
    sent = await web.app.enqueue("websub_content", payload)
    await run_all(web.app)
    assert (await web.app.get(sent.id)).state is JobState.FAILED


async def test_without_a_public_address_hubs_are_not_asked_which_is_said_once(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.packs.feeds")
    site.pages["/feed"] = lambda _: Reply(200, rss(1), {"link": f"<{site.url('/hub')}>; rel=hub"})
    with fresh_url("sqlite-file", tmp_path, None) as url:
        app = Windlass(url, allow_private_addresses=True)
        packs.install(app, ["feeds"])
        async with app:
            for _ in range(2):
                await fetched(app, site)
            await app.enqueue("renew_websub")
            [ran] = await run_all(app)
    assert ran.result == {"asked": 0}
    assert asked(site) == []
    said = [record.message.partition(":")[0] for record in caplog.records if record.name == "windlass.packs.feeds"]
    assert said == ["feeds with a hub are polled only"]
