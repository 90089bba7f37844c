"""The first page: what it shows, that it shows it safely, and that it needs nothing from outside."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.web.serving import Served, served
from windlass import JobState, Windlass
from windlass.core.access import Role
from windlass.packs import demo
from windlass.testing import FakeClock
from windlass.web.dashboard.times import age, short, until

HOSTILE = "<script>alert('x')</script>\"&"
NOW = FakeClock().now()


async def shown(web: Served, role: Role = Role.VIEWER) -> str:
    answer = await web.ask("GET", "/", role)
    assert answer.status_code == 200, answer.text
    return answer.text


def counts(html: str) -> dict[str, str]:
    return dict(re.findall(r'data-count="(\w+)">([\d,]+)<', html))


async def test_an_empty_queue_says_what_to_do(web: Served) -> None:
    html = await shown(web)
    assert "Nothing has been enqueued yet" in html
    assert "curl -H" in html
    assert "http://127.0.0.1/api/v1/jobs" in html
    assert set(counts(html).values()) == {"0"}
    assert set(counts(html)) == set(JobState)
    assert "No worker is online" in html


async def test_jobs_are_counted_and_listed_without_a_script(url: str) -> None:
    app = Windlass(url)

    @app.task(lane="fast")
    async def good() -> str:
        return "fine"

    @app.task(lane="slow", max_attempts=1)
    async def bad() -> None:
        raise RuntimeError(HOSTILE)

    async with served(app) as web:
        async with app.working():
            await app.wait(await good.enqueue(), timeout=30)
            failed = await bad.enqueue()
            with pytest.raises(Exception, match="alert"):
                await app.wait(failed, timeout=30)
            working = await shown(web)
        await good.using(delay="1h").enqueue()
        html = await fresh(web)
    assert counts(html) | {"completed": "1", "failed": "1", "scheduled": "1"} == counts(html)
    assert "Nothing has been enqueued yet" not in html
    assert "slots fast=3, *=5" in working
    assert re.search(r'<span class="badge">failed</span>', html)
    assert HOSTILE not in html
    assert "in bad\n    raise RuntimeError(HOSTILE)" in html
    assert f'href="/jobs/{failed.id}"' in html
    assert html.count('id="job-') == 3
    assert "2 runs in 60 minutes, 1 failed." in html


async def fresh(web: Served) -> str:
    """Look again, past what was seen a moment ago."""
    web.server.snapshots._seen = None
    return await shown(web)


async def test_whatever_a_job_is_called_stays_text(web: Served) -> None:
    job = await web.app.enqueue(HOSTILE, lane="pull", unique_key="x")
    await web.app.bury(job, HOSTILE)
    html = await shown(web)
    assert HOSTILE not in html
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;" in html
    assert re.findall(r"<script[^>]*>", html) == re.findall(
        r'<script (?:type="module" )?src="/assets/\w+\.js"(?: fetchpriority="low")?>', html
    )


async def test_a_payload_is_never_on_the_page(web: Served) -> None:
    await web.app.enqueue("secretive", {"password": "correct horse"}, lane="pull")
    assert "correct horse" not in await shown(web, Role.ADMIN)


async def test_only_our_own_script_and_style_are_asked_for(web: Served) -> None:
    answer = await web.ask("GET", "/", Role.VIEWER)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    html = answer.text
    assert '<script type="module" src="/assets/dashboard.js" fetchpriority="low"></script>' in html
    assert not re.search(r"<[^>]+ (style|on\w+)=", html)
    assert not re.search(r'(src|href)="(?!/|#board)', html)
    for asset in set(re.findall(r'"(/assets/[^"]+)"', html)):
        assert (await web.ask("GET", asset, None)).status_code == 200
    script = (await web.ask("GET", "/assets/dashboard.js", None)).text
    assert 'new EventSource(at("/api/v1/events"))' in script
    assert "innerHTML" not in script


async def test_who_has_not_logged_in_is_sent_to_the_login_page(web: Served) -> None:
    answer = await web.ask("GET", "/", None)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/")
    assert (await web.ask("GET", "/", Role.WORKER)).status_code == 403


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_button_is_for_sessions_that_may_enqueue(url: str) -> None:
    app = Windlass(url, admin_token="t" * 20)

    @app.task
    async def hello() -> str:
        return "hello"

    async with served(app) as web:
        assert 'id="hello"' not in await shown(web, Role.ADMIN)  # a program has no use for a button
        sent: dict[str, Any] = {"content": f"token={web.tokens[Role.ADMIN]}", "headers": FORM}
        assert (await web.ask("POST", "/login", None, **sent)).status_code == 303
        html = (await web.ask("GET", "/", None)).text
        assert 'id="hello"' in html
        csrf = re.findall(r'<meta name="csrf" content="([^"]+)"', html)
        options: dict[str, Any] = {"json": {"task": "hello"}, "headers": {"x-csrf-token": csrf[0]}}
        assert (await web.ask("POST", "/api/v1/jobs", None, **options)).status_code == 201


FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_many_who_look_at_once_cost_one_look(web: Served) -> None:
    snapshots = web.server.snapshots
    assert await snapshots.now() is await snapshots.now()


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.0421, "42 ms"), (3.25, "3.2 s"), (42, "42 s"), (61, "1 min"), (7200, "2 h"), (3 * 86400, "3 d")],
)
def test_durations_are_short(seconds: float, written: str) -> None:
    assert short(timedelta(seconds=seconds)) == written


def test_ages_never_run_backwards() -> None:
    assert age(NOW + timedelta(seconds=5), NOW) == "now"
    assert age(NOW - timedelta(seconds=5.7), NOW) == "5 s"


def test_what_is_to_come_and_what_was_are_told_apart() -> None:
    assert until(NOW + timedelta(minutes=2), NOW) == "in 2 min"
    assert until(NOW - timedelta(minutes=2), NOW) == "2 min ago"
    assert until(NOW, NOW) == "now"


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_demo_is_marked_as_one(url: str) -> None:
    async with served(Windlass(url, name=demo.app.name)) as web:
        assert "<strong>Demo.</strong>" in await shown(web)
    async with served(Windlass(url, name="demo")) as web:
        assert "Demo" not in await shown(web)
