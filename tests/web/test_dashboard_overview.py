"""The first page, the trends, the page of a task and the lanes: what they show is what the API answers."""

from __future__ import annotations

import html as markup
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.job import NewJob
from windlass.web.dashboard.charts import count_text, ms_text, rate_text

HTML = {"accept": "text/html,application/xhtml+xml"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
HOSTILE = "<script>alert('x')</script>\"&/ü"
on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


@pytest.fixture
async def worked(url: str) -> AsyncIterator[Served]:
    """Give a server with a worker, whose queue has runs of every kind behind it."""
    app = Windlass(url, retry_base="1ms", retry_cap="1ms", retry_jitter=0)

    @app.task(lane="fast", timeout=90)
    async def good() -> str:
        return "fine"

    @app.task(lane="slow", max_attempts=2)
    async def bad() -> None:
        raise RuntimeError("no")

    @app.task(every="1h")
    async def hourly() -> None:
        pass

    async with served(app) as web, app.working():
        jobs = [await good.enqueue() for _ in range(5)]
        failed = await bad.enqueue()
        for job in jobs:
            await app.wait(job, timeout=30)
        with pytest.raises(Exception, match="no"):
            await app.wait(failed, timeout=30)
        yield web


async def shown(web: Served, path: str, role: Role | None = Role.VIEWER, status: int = 200) -> str:
    web.server.snapshots._seen = None
    answer = await web.ask("GET", path, role, headers=HTML)
    assert answer.status_code == status, answer.text
    assert not re.search(r"<[^>]+ (style|on\w+)=", answer.text)
    return answer.text


def figure(html: str, name: str) -> str:
    """Return what a tile of the first page shows."""
    found = re.search(rf'id="figure-{name}".*?<dd[^>]*>([^<]*)</dd>', html, re.DOTALL)
    assert found is not None, name
    return markup.unescape(found[1])


def numbers(html: str, column: str) -> list[str]:
    """Return a column of the numbers behind the charts."""
    table = re.search(r'<details class="numbers" id="numbers">.*?</table>', html, re.DOTALL)
    assert table is not None
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table[0])
    rows = re.findall(r"<tr><th scope=\"row\">[^<]*</th>(.*?)</tr>", table[0])
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row)[heads.index(column) - 1] for row in rows]


def total(cells: list[str]) -> int:
    return sum(int(cell.replace(",", "")) for cell in cells if cell != "—")


async def test_the_last_hour_of_the_queue_is_known_to_a_server_that_has_just_started(url: str) -> None:
    app = Windlass(url)
    store = await app.store()
    now = await store.samples.take()
    await store.samples.record(now._replace(minute=now.minute - timedelta(minutes=3), waiting=41, running=7))
    await store.enqueue([NewJob(task="work")])
    async with served(app) as web:
        html = await shown(web, "/")
    waiting, running = numbers(html, "Waiting"), numbers(html, "Running")
    assert [cell for cell in waiting if cell != "—"] == ["41", "1"]
    assert [cell for cell in running if cell != "—"] == ["7", "0"]


async def test_the_tiles_show_what_the_summary_answers(worked: Served) -> None:
    html = await shown(worked, "/")
    summary: dict[str, Any] = (await worked.ask("GET", "/api/v1/metrics/summary", Role.VIEWER)).json()
    flow = summary["total"]
    assert figure(html, "waiting") == count_text(flow["jobs"]["pending"])
    assert figure(html, "dead") == "1"
    assert figure(html, "wait") == ms_text(flow["wait_ms"]["p95"])
    # Later by a moment, so the rate is a bit lower.
    [_, out] = figure(html, "flow").split(" / ")
    assert float(out) == pytest.approx(float(rate_text(flow["out_per_second"])), rel=0.2)
    assert "of 8 slots" in html
    points = (await worked.ask("GET", "/api/v1/metrics", Role.VIEWER)).json()["points"]
    assert len(numbers(html, "Completed")) == 60
    assert total(numbers(html, "Completed")) == sum(one["completed"] for one in points) == 5
    assert total(numbers(html, "Failed")) == sum(one["failed"] for one in points) == 2
    assert "7 runs in 60 minutes, 2 failed." in html


async def test_a_second_look_adds_to_the_minutes_of_the_first(worked: Served) -> None:
    first = await shown(worked, "/")
    job = await worked.app.enqueue("good")
    await worked.app.wait(job, timeout=30)
    assert total(numbers(await shown(worked, "/"), "Completed")) == total(numbers(first, "Completed")) + 1
    assert numbers(first, "Waiting")[-1] == "0"
    assert numbers(first, "Waiting")[0] == "—"


@on_one
async def test_the_first_page_shows_lanes_failures_slots_and_next_fires(worked: Served) -> None:
    html = await shown(worked, "/")
    assert 'aria-label="0 of 8 slots busy"' in html
    assert 'aria-label="0 of 5 slots busy"' in html
    assert "RuntimeError: no" in html
    assert re.search(r'href="/dead\?fingerprint=[^"]+">bad</a>', html)
    assert html.count('class="slot free"') == 8
    assert re.search(r'class="timeline".*?aria-label="hourly, in ', html, re.DOTALL)
    assert "None is open" in html
    assert "Recent actions" not in html
    assert "Recent actions" in await shown(worked, "/", Role.ADMIN)


@on_one
async def test_health_names_what_holds_jobs_back_worst_first(worked: Served) -> None:
    assert "All clear." in await shown(worked, "/")
    app = worked.app
    await (await app.store()).enqueue([NewJob(task="nobody", lane="crawl")])
    await app.lanes.pause("fast")
    await app.enqueue("good")
    await app.breakers.force_open("partner")
    html = await shown(worked, "/")
    found = [markup.unescape(text) for text in re.findall(r'<li id="worst-\d".*?<a href="[^"]*">([^<]*)</a>', html)]
    assert found[0] == "nobody: 1 waiting, no worker has its code"
    assert set(found[1:]) == {"breaker partner is open: its tasks wait", "lane fast is paused, 1 waiting"}
    assert 'href="/jobs?state=pending&amp;lane=crawl&amp;task=nobody"' in html
    assert "All clear." not in html
    assert "data-url" not in html


@on_one
async def test_remedies_are_for_sessions_that_may_act(worked: Served) -> None:
    await worked.app.lanes.pause("fast")
    await worked.app.enqueue("good")
    for role, may_act in ((Role.VIEWER, False), (Role.OPERATOR, True)):
        sent: dict[str, Any] = {"content": f"token={worked.tokens[role]}", "headers": FORM}
        assert (await worked.ask("POST", "/login", None, **sent)).status_code == 303
        html = await shown(worked, "/", None)
        assert ('data-url="/api/v1/lanes/fast/resume"' in html) is may_act
        assert ("Retry …" in html) is may_act
        assert ("Pause</button>" in await shown(worked, "/tasks/good", None)) is may_act


@on_one
async def test_who_changes_something_sees_it_at_once(worked: Served) -> None:
    sent: dict[str, Any] = {"content": f"token={worked.tokens[Role.OPERATOR]}", "headers": FORM}
    assert (await worked.ask("POST", "/login", None, **sent)).status_code == 303
    first = (await worked.ask("GET", "/lanes", None, headers=HTML)).text
    assert "paused" not in re.findall(r'<span class="badge s-\w+">(\w+)</span>', first)
    [csrf] = re.findall(r'<meta name="csrf" content="([^"]+)"', first)
    answer = await worked.ask("POST", "/api/v1/lanes/fast/pause", None, headers={"x-csrf-token": csrf})
    assert answer.status_code == 200, answer.text
    # Within the half second for which others would be shown what was seen before.
    assert "paused" in re.findall(
        r'<span class="badge s-\w+">(\w+)</span>', (await worked.ask("GET", "/lanes", None, headers=HTML)).text
    )


@on_one
async def test_without_a_worker_that_is_the_worst(web: Served) -> None:
    await (await web.app.store()).enqueue([NewJob(task="some")] * 3)
    html = await shown(web, "/")
    assert re.search(r'id="worst-1".*?critical.*?<a href="/jobs\?state=pending">3 waiting, and no worker is online</a>', html)


async def test_trends_show_what_the_series_answers(worked: Served) -> None:
    html = await shown(worked, "/trends?range=6h")
    series = (await worked.ask("GET", "/api/v1/metrics?step=5m", Role.VIEWER)).json()
    assert total(numbers(html, "Completed")) == sum(one["completed"] for one in series["points"]) == 5
    assert len(numbers(html, "Completed")) == 72
    assert "7 runs in 6 hours, 2 failed." in html
    assert "2 runs failed, 28.6 % of those that completed or failed." in html
    assert total(numbers(await shown(worked, "/trends?task=bad"), "Failed")) == 2
    assert total(numbers(await shown(worked, "/trends?task=bad"), "Completed")) == 0
    assert total(numbers(await shown(worked, "/trends?lane=fast"), "Completed")) == 5
    # What a form sends for fields that were left empty.
    assert "7 runs" in await shown(worked, "/trends?from=&to=&step=&task=&lane=&compare=&other=")


async def test_two_ranges_stand_beside_each_other(worked: Served) -> None:
    html = await shown(worked, "/trends?range=1h&compare=before")
    assert "compared with" in html
    assert total(numbers(html, "Runs before")) == 0
    # The second range is the one with the runs.
    moment = await (await worked.app.store()).clock()
    past = f"{moment - timedelta(minutes=30):%Y-%m-%dT%H:%M}"
    old = f"{moment - timedelta(hours=5):%Y-%m-%dT%H:%M}"
    end = f"{moment - timedelta(hours=4):%Y-%m-%dT%H:%M}"
    html = await shown(worked, f"/trends?from={old}&to={end}&compare=range&other={past}")
    assert total(numbers(html, "Runs before")) == 7
    assert total(numbers(html, "Completed")) == 0
    assert re.search(r'<th scope="row">Runs</th><td class="num">0</td><td class="num">7</td>', html)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("/trends?range=8d", "range: must be 1m to 7d"),
        ("/trends?range=soon", "range:"),
        ("/trends?step=90s", "step: must be whole minutes"),
        ("/trends?step=0s", "step: must be"),
        ("/trends?range=7d&step=1m", "step: makes more than 240 points; use at least 1h"),
        ("/trends?from=2026-01-02T00:00&to=2026-01-01T00:00", "from: must be before to"),
        ("/trends?from=2026-01-01T00:00", "from: must be at most 7 days before to"),
        ("/trends?from=yesterday", "from:"),
        ("/trends?compare=tomorrow", "compare:"),
        ("/trends?colour=red", "colour"),
        ("/tasks/good?range=1y", "range:"),
    ],
)
@on_one
async def test_a_bad_range_is_answered_with_a_page_that_names_the_field(worked: Served, address: str, complaint: str) -> None:
    assert complaint in markup.unescape(await shown(worked, address, status=400))


@on_one
async def test_a_task_has_a_page(worked: Served) -> None:
    html = await shown(worked, "/tasks")
    assert 'href="/tasks/good"' in html
    good = await shown(worked, "/tasks/good")
    assert "5 runs in 60 minutes, 0 failed." in good
    assert re.search(r"5 runs: half up to [\d.]+ ms", good)
    assert re.search(r"<dt>timeout</dt><dd>1 min 30 s</dd>", good)
    assert re.search(r"<dt>lane</dt><dd>fast</dd>", good)
    bad = await shown(worked, "/tasks/bad")
    assert "100 % of those that completed or failed" in bad
    assert "RuntimeError: no" in bad
    assert '<a class="chip s-failed" href="/jobs?task=bad&amp;state=failed">failed <b>1</b></a>' in bad
    assert "There is no task nothing" in await shown(worked, "/tasks/nothing", status=404)


async def test_the_page_of_a_task_shows_whatever_its_name_is_as_text(web: Served) -> None:
    await (await web.app.store()).enqueue([NewJob(task=HOSTILE, lane=HOSTILE)])
    html = await shown(web, "/", Role.ADMIN)
    [path] = set(re.findall(r'href="(/tasks/[^"]+)"', html))
    for page in (
        html,
        await shown(web, path),
        await shown(web, "/trends"),
        await shown(web, "/lanes"),
        await shown(web, "/tasks"),
    ):
        assert "<script>alert" not in page
    assert f"<h1>{markup.escape(HOSTILE).replace('&quot;', '&#34;').replace('&#x27;', '&#39;')}</h1>" in await shown(web, path)


@on_one
async def test_lanes_show_their_slots_and_rates(worked: Served) -> None:
    html = await shown(worked, "/lanes")
    assert "*: 0 of 5 busy, fast: 0 of 3 busy" in html
    assert 'aria-label="0 of 8 slots busy"' in html
    summary = (await worked.ask("GET", "/api/v1/metrics/summary", Role.VIEWER)).json()
    assert ms_text(summary["lanes"]["slow"]["wait_ms"]["p95"]) in html
