"""The list of jobs, one job and a correlation as pages: what they show, to whom, and what an address can ask for."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.serving import Served, served
from tests.web.test_dashboard import HOSTILE, listed, shown
from tests.web.test_pull import pull
from windlass import JobContext, Windlass
from windlass.core.access import Role
from windlass.core.ids import job_uuid
from windlass.core.job import JobState
from windlass.web.dashboard.json_tree import MOST_NODES, shown_json
from windlass.web.dashboard.stack_trace import is_own, trace_pieces


async def test_an_address_asks_for_priority_worker_and_error(web: Served) -> None:
    app = web.app
    low, high, broken = [await app.enqueue("some", {"n": n}, lane="pull", priority=n) for n in (10, 90, 10)]
    await app.bury(broken, "Connection to db-7 refused")
    assert listed(await shown(web, "/jobs?priority=90")) == [high.id]
    assert listed(await shown(web, "/jobs?priority=10&state=pending")) == [low.id]
    assert listed(await shown(web, "/jobs?error=DB-7")) == [broken.id]
    assert listed(await shown(web, "/jobs?worker=nobody")) == []
    await pull(web, worker="w1")
    assert listed(await shown(web, "/jobs?worker=w1")) == [high.id]
    api = await web.ask("GET", "/api/v1/jobs?worker=w1&priority=90", Role.VIEWER)
    assert [one["number"] for one in api.json()["jobs"]] == [high.id]
    assert "priority:" in await shown(web, "/jobs?priority=many", status=400)


async def test_each_filter_is_a_token_that_a_link_removes(web: Served) -> None:
    await web.app.enqueue("a&b", {"n": 1}, lane="pull", subject="<b>")
    html = await shown(web, "/jobs?state=pending,failed&task=a%26b&subject=%3Cb%3E&priority=0&size=25")
    tokens = dict(re.findall(r'<a class="token" href="([^"]+)"[^>]*><span class="dim">(\w+)</span>', html))
    assert sorted(tokens.values()) == ["priority", "state", "state", "subject", "task"]
    for address, name in tokens.items():
        without = address.replace("&amp;", "&")
        assert "size=25" in without
        rest = await shown(web, without)
        assert len(re.findall('class="token"', rest)) == 4, name
    # Without a script, every filter has a field of its own.
    fields = set(re.findall(r'<input name="(\w+)"', html))
    assert fields == {"task", "lane", "priority", "subject", "correlation", "worker", "since", "error"}


async def test_a_bulk_in_parts_tells_where_it_is_and_what_it_changed(web: Served) -> None:
    jobs = [(await web.app.enqueue("some", lane="pull", delay="1h")).id for _ in range(5)]
    await web.app.cancel(jobs[1])
    body: dict[str, Any] = {"action": "pause", "filter": {}, "limit": 3}
    first = (await web.ask("POST", "/api/v1/bulk", Role.OPERATOR, json=body)).json()
    assert (first["matched"], first["refused"], first["changed_ids"]) == (3, 1, [jobs[0], jobs[2]])
    await web.app.enqueue("some", lane="pull", delay="1h")
    rest = {**body, "after": first["next"], "until": first["until"]}
    second = (await web.ask("POST", "/api/v1/bulk", Role.OPERATOR, json=rest)).json()
    assert (second["changed_ids"], second["next"]) == (jobs[3:], None)
    bad = await web.ask("POST", "/api/v1/bulk", Role.OPERATOR, json={"action": "pause", "filter": {}, "after": 3})
    assert (bad.status_code, bad.json()["error"]) == (400, "after: goes with limit (got 3)")
    assert (await web.ask("POST", "/api/v1/bulk", Role.VIEWER, json=body)).status_code == 403


async def test_a_clone_takes_another_payload_that_its_task_takes(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def add(number: int) -> int:
        return number

    async with served(app) as web:
        job = await add.enqueue(1)
        refused = await web.ask("POST", f"/api/v1/jobs/{job.id}/clone", Role.OPERATOR, json={"payload": {"number": 2}})
        assert refused.status_code == 400
        await app.cancel(job)
        made = await web.ask("POST", f"/api/v1/jobs/{job.id}/clone", Role.OPERATOR, json={"payload": {"number": 2**62 + 1}})
        assert (made.status_code, made.json()["payload"]) == (201, {"number": 2**62 + 1})
        wrong = await web.ask("POST", f"/api/v1/jobs/{job.id}/clone", Role.OPERATOR, json={"payload": {"numbers": 2}})
        assert wrong.status_code == 400
        assert "numbers" in wrong.json()["error"]


async def test_a_failed_run_shows_its_own_frames_apart_and_a_time_line(url: str) -> None:
    app = Windlass(url)

    @app.task(max_attempts=2, retry={"base": "1ms"})
    async def broken(deep: dict[str, Any]) -> None:
        int(deep["text"])

    async with served(app) as web:
        async with app.working():
            job = await broken.enqueue({"text": "<i>no number</i>", "big": 2**62 + 1, "below": [1, {"x": None}]})
            with pytest.raises(Exception, match="invalid literal"):
                await app.wait(job, timeout=30)
        html = await shown(web, f"/jobs/{job.id}", Role.OPERATOR)
    own = re.findall(r'<span class="frame-own">(.*?)</span>', html, re.DOTALL)
    assert any("int(deep[&#34;text&#34;])" in piece for piece in own)
    assert f'"json-number">{2**62 + 1}<' in html
    assert '<details class="json-node"' in html
    assert "<i>no number" not in html
    assert len(re.findall(r'<a class="line" href="#run-[12]" title="failed: waited .*?, ran .*?"', html)) == 2


async def test_progress_and_items_of_a_job_are_shown(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def find(ctx: JobContext) -> None:
        await ctx.progress(count=1, message="first <page>", cursor="c-1")
        await ctx.items([{"name": "Ann <b>", "password": "secret"}])
        raise RuntimeError("once more")

    async with served(app) as web:
        job = await find.enqueue()
        async with app.working():
            for _ in range(400):
                if (await app.get(job)).executions and (await app.get(job)).state is not JobState.RUNNING:
                    break
                await asyncio.sleep(0.05)
        html = await shown(web, f"/jobs/{job.id}", Role.OPERATOR)
        assert "first &lt;page&gt;" in html
        assert "<code>c-1</code>" in html
        assert "1 item<" in html
        assert "Ann &lt;b&gt;" in html
        assert "secret" not in await shown(web, f"/jobs/{job.id}", Role.VIEWER)


async def test_a_correlation_is_a_page_with_the_whole_tree(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def leaf(n: int) -> int:
        return n

    @app.task
    async def root() -> None:
        for n in range(3):
            await leaf.enqueue(n)

    async with served(app) as web:
        async with app.working():
            job = await root.using(correlation_id=f"order/7 {HOSTILE}").enqueue()
            await app.wait(job, timeout=30)
            for one in (await app.list()).jobs:
                await app.wait(one.id, timeout=30)
        path = f"/correlations/{quote(f'order/7 {HOSTILE}', safe='')}"
        html = await shown(web, path)
        assert "<script>alert" not in html
        assert len(re.findall(r'<tr id="span-\d+"', html)) == 4
        assert html.count('class="depth depth-1"') == 3
        assert len(re.findall(r'<rect class="t-completed"', html)) == 4
        # The links of the job's page and of the list lead there too.
        assert f'href="{path}"' in await shown(web, f"/jobs/{job.id}")
        assert f'href="{path}"' in await shown(web, "/jobs?columns=correlation")
        own = await shown(web, f"/correlations/{job.id}")
        assert len(re.findall(r'<tr id="span-\d+"', own)) == 4
        assert "There is no correlation" in await shown(web, "/correlations/nothing-has-it", status=404)
        alone = await leaf.enqueue(9)
        assert len(re.findall(r'<tr id="span-\d+"', await shown(web, f"/correlations/{job_uuid(alone.id)}"))) == 1


async def test_a_long_correlation_comes_in_pages(web: Served) -> None:
    for n in range(105):
        await web.app.enqueue("some", {"n": n}, lane="pull", correlation_id="long")
    first = await shown(web, "/correlations/long")
    assert len(re.findall(r'<tr id="span-\d+"', first)) == 100
    following = re.search(r'href="(/correlations/long\?after=\d+)" rel="next"', first)
    assert following is not None
    second = await shown(web, following[1])
    assert len(re.findall(r'<tr id="span-\d+"', second)) == 5
    assert len(first) < 150_000


def test_frames_of_libraries_are_told_from_those_of_the_application() -> None:
    assert is_own("/srv/shop/orders.py")
    assert is_own("C:\\shop\\lib\\orders.py")
    assert is_own("/usr/lib/python3/dist-packages/windlass/packs/crawl/task.py")
    for file in (
        "/usr/lib/python3.12/asyncio/tasks.py",
        "/srv/venv/lib/python3.12/site-packages/httpx/_client.py",
        "C:\\Python312\\Lib\\json\\decoder.py",
        "<frozen importlib._bootstrap>",
    ):
        assert not is_own(file), file
    trace = (
        'Traceback (most recent call last):\n  File "/srv/shop/orders.py", line 3, in ship\n    pay()\n    ~~~^^\n'
        '  File "/usr/lib/python3.12/json/decoder.py", line 9, in decode\n    raise X\nX: no\n\nThe above …\n'
    )
    pieces = trace_pieces(trace)
    assert [piece.kind for piece in pieces] == ["text", "own", "library", "text"]
    assert "".join(piece.text for piece in pieces) == trace
    assert [piece.kind for piece in trace_pieces("goroutine 1 [running]:\nmain.main()\n")] == ["text"]


def test_a_value_that_is_too_large_for_a_tree_is_the_beginning_of_its_text() -> None:
    small = shown_json({"a": [1.5, 2**70, None, True, "x"]})
    assert small.root is not None
    assert [leaf.text for leaf in small.root.children[0].children] == ["1.5", str(2**70), "null", "true", '"x"']
    wide = shown_json(list(range(MOST_NODES)))
    assert (wide.root, wide.is_cut) == (None, False)
    huge = shown_json({"text": "x" * 100_000})
    assert (huge.root, huge.is_cut, len(huge.text)) == (None, True, 20_000)


async def test_a_viewer_sees_no_action_and_no_palette_verbs(web: Served) -> None:
    job = await web.app.enqueue("some", lane="pull")
    form = {"content-type": "application/x-www-form-urlencoded"}
    for role, may_act in ((Role.VIEWER, False), (Role.PRODUCER, False), (Role.OPERATOR, True)):
        await web.ask("POST", "/login", None, content=f"token={web.tokens[role]}", headers=form)
        for path in (f"/jobs/{job.id}", "/jobs"):
            html = await shown(web, path, None)
            assert ("data-shortcut" in html) is may_act, (role, path)
            assert ('data-may="operate"' in html) is may_act, (role, path)
