"""Recurring jobs, workers, dead letters, breakers, items, packs and settings: the pages, and the routes behind them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from tests.web.test_dashboard import HOSTILE, HTML, shown
from windlass import JobState, Windlass
from windlass.core.access import Role
from windlass.core.job import Lease
from windlass.core.known_task import DeclaredTask
from windlass.core.outcome import Returned, Run, decide
from windlass.core.worker import NewWorker
from windlass.store import Store

on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
PAGES = ("/items", "/settings", "/reference")
EVIL_WORKER = f"box/{HOSTILE}"


@pytest.fixture
async def packed(url: str) -> AsyncIterator[Served]:
    async with served(Windlass(url, **SETTINGS)) as web:
        await (await web.app.store()).tasks.declare([DeclaredTask(name="crawl"), DeclaredTask(name="fetch_feed")])
        yield web


@on_one
@pytest.mark.parametrize("path", PAGES)
async def test_a_new_page_keeps_the_policy_for_scripts_and_styles(web: Served, path: str) -> None:
    html = await shown(web, path, Role.ADMIN)
    assert not re.search(r"<[^>]+ (style|on\w+)=", html)
    assert not re.search(r'(src|href)="(?!/|#board)', html)
    for asset in set(re.findall(r'"(/assets/[^"]+)"', html)):
        answer = await web.ask("GET", asset, None)
        assert (answer.status_code, "innerHTML" in answer.text) == (200, False), asset


@on_one
async def test_only_admins_see_settings(web: Served) -> None:
    assert "/settings" in await shown(web, "/", Role.ADMIN)
    for role in (Role.VIEWER, Role.OPERATOR):
        assert (await web.ask("GET", "/settings", role, headers=HTML)).status_code == 403
        assert "/settings" not in await shown(web, "/", role)


async def test_the_next_times_are_looked_at_before_a_job_is_made(web: Served) -> None:
    answer = await web.ask("GET", "/api/v1/schedules/preview?every=90m&count=3", Role.VIEWER)
    found = answer.json()
    assert (found["in_words"], len(found["times"])) == ("every 1 hour 30 minutes", 3)
    first, second = (datetime.fromisoformat(one["at"]) for one in found["times"][:2])
    assert second - first == timedelta(minutes=90)
    query = "cron=30+3+*+*+*&timezone=Europe/Helsinki&start_at=2027-03-27T12:00:00Z&count=2"
    jump, after = (await web.ask("GET", f"/api/v1/schedules/preview?{query}", Role.VIEWER)).json()["times"]
    # The clock jumps from 3:00 to 4:00.
    assert (jump["local"], jump["shift"]) == ("2027-03-28T04:00:00", "moved")
    assert (after["local"], after["shift"]) == ("2027-03-29T03:30:00", None)
    twice = "cron=30+3+*+*+*&timezone=Europe/Helsinki&start_at=2027-10-30T12:00:00Z&count=1"
    [back] = (await web.ask("GET", f"/api/v1/schedules/preview?{twice}", Role.VIEWER)).json()["times"]
    assert (back["local"], back["shift"], back["utc_offset_seconds"]) == ("2027-10-31T03:30:00", "repeated", 3 * 3600)


@on_one
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("every=soon", "every"),
        ("every=1ms", "every"),
        ("cron=61+*+*+*+*", "cron"),
        ("cron=@sometimes", "cron"),
        ("cron=@daily&timezone=Mars/Base", "timezone"),
        ("every=1h&cron=@daily", "cron"),
        ("timezone=UTC", "timezone"),
        ("", "every"),
        ("every=1h&count=0", "count"),
    ],
)
async def test_what_cannot_repeat_is_refused_by_the_name_of_its_field(web: Served, query: str, field: str) -> None:
    answer = await web.ask("GET", f"/api/v1/schedules/preview?{query}", Role.VIEWER)
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (400, field), answer.text


async def test_what_a_job_does_when_late_is_chosen_and_changed_over_http(web: Served) -> None:
    body = {"task": "report", "name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Helsinki", "misfire": "skip"}
    await (await web.app.store()).tasks.declare([DeclaredTask(name="report")])
    made = await web.ask("POST", "/api/v1/jobs", json=body)
    assert made.status_code == 201, made.text
    number = made.json()["number"]
    assert (await web.app.get(number)).recurrence.misfire == "skip"  # type: ignore[union-attr]
    edited = await web.ask("PUT", f"/api/v1/jobs/{number}", json={"every": "15m", "fixed_rate": True, "misfire": "all"})
    assert edited.status_code == 200, edited.text
    rule = (await web.app.get(number)).recurrence
    assert rule is not None
    assert (str(rule.cadence), rule.misfire, rule.fixed_rate) == ("@every 15m", "all", True)
    wrong = await web.ask("POST", "/api/v1/jobs", json={**body, "name": "other", "misfire": "never"})
    assert (wrong.status_code, wrong.json()["error"].startswith("misfire: ")) == (400, True)
    alone = await web.ask("POST", "/api/v1/jobs", json={"task": "report", "misfire": "skip"})
    assert alone.json()["error"] == "misfire: goes with every or cron (got 'skip')"


async def test_a_recurring_job_shows_its_times_its_runs_and_what_it_missed(web: Served) -> None:
    store = await web.app.store()
    await store.tasks.declare([DeclaredTask(name="report")])
    body = {"task": "report", "name": HOSTILE, "cron": "*/5 * * * *", "misfire": "skip"}
    number = (await web.ask("POST", "/api/v1/jobs", json=body)).json()["number"]
    html = await shown(web, "/recurring", Role.VIEWER)
    assert "every 5 minutes (UTC)" in html
    assert "leaves out what it missed" in html
    assert html.count("<li>") == 5
    assert "<script>alert" not in html
    assert "Edit …" not in html
    assert "missed" not in html.replace("what it missed", "")
    await web.app.pause(number)
    assert "Run now" not in await shown(web, "/recurring", Role.VIEWER)


async def test_recurring_jobs_are_read_at_once_however_many_there_are(web: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await web.app.store()
    await store.tasks.declare([DeclaredTask(name="report")])
    calls: list[object] = []
    run = Store.run

    async def counting(self: Store, call: Any, *given: Any) -> Any:
        calls.append(call)
        return await run(self, call, *given)

    async def cost(jobs: int) -> int:
        for number in range(jobs):
            body = {"task": "report", "name": f"job {jobs}/{number}", "every": "1h", "run_at": "2020-01-01T00:00:00Z"}
            assert (await web.ask("POST", "/api/v1/jobs", json=body)).status_code == 201
        await store.promote()
        for job in await store.claim(await store.slices(), 100, Lease(jobs, "w", timedelta(minutes=1))):
            now = job.claimed_at
            assert await store.finish([decide(job, Returned(), Run(now, now), now=now, rng=Random(1))])
        with monkeypatch.context() as patched:
            patched.setattr(Store, "run", counting)
            calls.clear()
            html = await shown(web, "/recurring", Role.VIEWER)
        assert html.count('class="s-completed" title="run 1: completed, 0 ms, began') == (1 if jobs == 1 else jobs + 1), html
        return len(calls)

    # What the server does beside answering is counted too.
    one = await cost(1)
    assert await cost(24) < one + 24


@on_one
async def test_a_job_that_is_late_is_marked_as_such(web: Served) -> None:
    past = (datetime.now(UTC) - timedelta(minutes=22)).isoformat()
    await (await web.app.store()).tasks.declare([DeclaredTask(name="report")])
    made = await web.ask(
        "POST", "/api/v1/jobs", json={"task": "report", "name": "late", "every": "10m", "fixed_rate": True, "run_at": past}
    )
    assert made.status_code == 201, made.text
    html = await shown(web, "/recurring", Role.VIEWER)
    assert re.search(r"missed \d+ times", html), html


async def test_workers_are_paused_and_resumed_over_http(web: Served) -> None:
    store = await web.app.store()
    await store.workers.register(NewWorker(id=EVIL_WORKER, host=HOSTILE, pid=7, version="1", pools='{"*":3}', app_version="v7"))
    address = f"/api/v1/workers/{quote(EVIL_WORKER, safe='')}"
    assert (await web.ask("POST", f"{address}/pause", Role.PRODUCER)).status_code == 403
    paused = (await web.ask("POST", f"{address}/pause", Role.OPERATOR)).json()
    assert (paused["id"], paused["paused_by"], paused["is_online"]) == (EVIL_WORKER, "token:3:operator", True)
    await store.workers.seen(EVIL_WORKER, 0, cpu_percent=12, memory_mb=345)
    html = await shown(web, "/workers", Role.VIEWER)
    for part in ("claims nothing", "by token:3:operator", "12 % of a core", "345 MB", "*=3", "v7"):
        assert part in html, part
    assert "<script>alert" not in html
    assert "Claim again" not in html
    assert (await web.ask("POST", f"{address}/resume", Role.OPERATOR)).json()["paused_at"] is None
    assert "claims nothing" not in await shown(web, "/workers", Role.VIEWER)
    for verb in ("pause", "resume"):
        missing = await web.ask("POST", f"/api/v1/workers/nobody/{verb}", Role.OPERATOR)
        assert (missing.status_code, "worker 'nobody' not found" in missing.json()["error"]) == (404, True)
    log = (await web.ask("GET", "/api/v1/audit?action=pause+worker")).json()["audit"]
    assert [(one["principal"], one["target"]) for one in log] == [("token:3:operator", f"worker:{EVIL_WORKER}")]


async def found_items(web: Served, **data: Any) -> int:
    """Let a job find two items; returns its number."""
    store = await web.app.store()
    made = await web.app.enqueue("scrape", {}, lane="pull", collection=HOSTILE)
    await web.app.override_status(made.id, JobState.RUNNING, by="ann")
    job = await web.app.get(made.id)
    assert job.token is not None
    await store.items.add(job.id, job.token, [{"place": place, **data} for place in range(2)])
    return job.id


async def test_items_are_listed_by_collection_and_by_job(url: str) -> None:
    async with served(Windlass(url, accept_unknown=True)) as web:
        assert "No worker has found anything yet." in await shown(web, "/items")
        assert (await web.ask("GET", "/api/v1/items/collections", Role.VIEWER)).json()["collections"] == []
        number = await found_items(web, token="hunter2", text=HOSTILE)
        [one] = (await web.ask("GET", "/api/v1/items/collections", Role.VIEWER)).json()["collections"]
        assert one == {"name": HOSTILE, "items": 2, "is_exact": True}
        for path in ("/items", f"/items?collection={quote(HOSTILE)}", f"/items?job={number}"):
            html = await shown(web, path, Role.VIEWER)
            assert "<script>alert" not in html, path
            assert "hunter2" not in html, path
            for link in re.findall(r'href="(/api[^"]+)" download', html):
                answer = await web.ask("GET", link.replace("&amp;", "&"), Role.VIEWER)
                assert (answer.status_code, answer.headers["content-disposition"].startswith("attachment")) == (200, True)
        assert "hunter2" in await shown(web, f"/items?job={number}", Role.OPERATOR)
        assert "found first by" in await shown(web, f"/items?job={number}")
        assert (await web.ask("GET", "/items?job=odd", headers=HTML)).status_code in {400, 404}


@on_one
async def test_pages_and_feeds_exist_only_with_their_packs(web: Served) -> None:
    for path in ("/pages", "/feeds"):
        answer = await web.ask("GET", path, Role.VIEWER, headers=HTML)
        assert (answer.status_code, "no process has the pack" in answer.text) == (404, True), path
        assert f'href="{path}"' not in await shown(web, "/items")


async def test_pages_and_feeds_are_listed(packed: Served) -> None:
    html = await shown(packed, "/items")
    for path in ("/pages", "/feeds"):
        assert f'href="{path}"' in html
        assert "<h1>" in await shown(packed, path)
    feed = (await packed.ask("POST", "/api/v1/feeds", json={"url": "https://example.org/feed", "subscriber": "me"})).json()
    assert "https://example.org/feed" in await shown(packed, "/feeds")
    assert "None yet." in await shown(packed, f"/feeds?feed={feed['id']}")
    assert (await packed.ask("GET", "/feeds?feed=99999", Role.VIEWER, headers=HTML)).status_code == 404
    assert "None with these words." in await shown(packed, "/pages?search=nothing")


async def test_settings_are_listed_with_where_they_come_from_and_without_secrets(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_KEEP_DAYS", "7")
    monkeypatch.setenv("WINDLASS_ALERT_WEBHOOK", "https://hooks.example.org/T0/B0/verysecretpart")
    app = Windlass(url, **SETTINGS, smtp_url="smtps://ann:hunter2@mail.example.org:465", lease_seconds="25s")
    async with served(app) as web:
        answer = await web.ask("GET", "/api/v1/configuration")
        found = {one["name"]: one for one in answer.json()["configuration"]}
        assert (found["keep_days"]["value"], found["keep_days"]["origin"]) == ("7", "environment")
        assert (found["lease_seconds"]["value"], found["lease_seconds"]["origin"]) == ("25s", "argument")
        assert (found["port"]["value"], found["port"]["origin"], found["packs"]["value"]) == ("8060", "default", None)
        assert found["alert_webhook"]["value"] == "https://hooks.example.org/…"
        assert (found["admin_token"]["value"], found["admin_token"]["is_secret"]) == ("[redacted]", True)
        html = await shown(web, "/settings", Role.ADMIN)
        for text in (answer.text, html):
            for secret in ("static-admin-token", "shared-worker-secret", "j" * 32, "hunter2", "verysecretpart"):
                assert secret not in text, secret
        assert (await web.ask("GET", "/api/v1/configuration", Role.OPERATOR)).status_code == 403


def test_a_password_in_a_database_url_is_not_shown() -> None:
    from windlass.web.configuration import configuration_of  # noqa: PLC0415

    app = Windlass("postgresql://ann:hunter2@db.example.org/jobs?password=hunter3")
    [found] = [one for one in configuration_of(app) if one.name == "database_url"]
    assert found.value == "postgresql://…@db.example.org/jobs?…"


async def test_the_settings_page_shows_tokens_and_packs(web: Served) -> None:
    await web.ask("POST", "/api/v1/tokens", json={"name": HOSTILE, "role": "worker", "lanes": ["fast"], "expires_in": "90d"})
    await web.ask("PUT", "/api/v1/settings/BACKOFF_BASE_SEC", json={"value": "45"})
    html = await shown(web, "/settings", Role.ADMIN)
    assert "<script>alert" not in html
    assert re.search(r"BACKOFF_BASE_SEC</code></th><td>45</td><td>database", html)
    # A bearer token is no session: it cannot prove that a click is meant.
    assert "New token" not in html
    assert "brings ready-made tasks" in html


async def test_the_desk_shows_notes_edits_and_what_is_new(url: str) -> None:
    app = Windlass(url, accept_unknown=True)
    async with served(app) as web:
        job = await app.enqueue("mail", {"to": "ann", "password": "hunter2"}, lane="pull")
        await app.bury(job, "mailbox full")
        [letter] = (await web.ask("GET", "/api/v1/dead-letters")).json()["dead_letters"]
        await web.ask("POST", f"/api/v1/dead-letters/{letter['id']}/notes", json={"text": f"seen {HOSTILE}"})
        await web.ask("PUT", f"/api/v1/dead-letters/{letter['id']}/payload", json={"payload": {"to": "bob"}})
        html = await shown(web, "/dead", Role.VIEWER)
        for part in ("edited by token:4:admin", "seen &lt;script&gt;", "new since the last deploy"):
            assert part in html, part
        assert "hunter2" not in html
        assert "No kind is new" in await shown(web, "/dead?new=true")
        await web.ask("POST", f"/api/v1/dead-letters/{letter['id']}/acknowledge", json={"note": "known"})
        assert "acknowledged by token:4:admin" in await shown(web, "/dead?status=acknowledged")


@on_one
async def test_the_history_of_a_breaker_is_shown(web: Served) -> None:
    for _ in range(3):
        await web.app.breakers.force_open(HOSTILE, "10m")
        await web.app.breakers.reset(HOSTILE)
    html = await shown(web, "/breakers")
    assert "3 earlier changes" in html
    assert "<script>alert" not in html


@on_one
async def test_the_reference_knows_who_looks_at_it(web: Served) -> None:
    assert 'data-role="viewer"' in await shown(web, "/reference", Role.VIEWER)
    document = (await web.ask("GET", "/openapi.json", Role.VIEWER)).json()
    # The page reads the role of an operation from this sentence.
    assert document["paths"]["/api/v1/workers/{id}/pause"]["post"]["description"] == "Takes the role `operator`."
    assert json.dumps(document)
