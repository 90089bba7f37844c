"""The pages of the dashboard: what each shows to whom, that it shows it safely, and that its address says it all."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role

HOSTILE = "<script>alert('x')</script>\"&"
PAGES = ("/", "/alerts", "/jobs", "/recurring", "/dead", "/workers", "/lanes", "/tasks", "/breakers", "/audit")
HTML = {"accept": "text/html,application/xhtml+xml"}


async def shown(web: Served, path: str, role: Role | None = Role.VIEWER, status: int = 200) -> str:
    answer = await web.ask("GET", path, role, headers=HTML)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def listed(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr role="row" id="job-(\d+)"', html)]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_of_an_empty_queue_is_drawn_for_who_may_see_it(web: Served, path: str) -> None:
    html = await shown(web, path, Role.ADMIN)
    assert '<main data-at="' in html
    answer = await web.ask("GET", path, Role.VIEWER, headers=HTML)
    assert answer.status_code == (403 if path == "/audit" else 200)
    if path == "/audit":
        assert "You may not see this" in answer.text
    else:
        assert "/audit" not in answer.text
    assert (await web.ask("GET", path, None)).status_code == 303


@pytest.mark.parametrize("path", PAGES[1:])
async def test_a_page_keeps_the_policy_for_scripts_and_styles(web: Served, path: str) -> None:
    html = await shown(web, path, Role.ADMIN)
    assert not re.search(r"<[^>]+ (style|on\w+)=", html)
    assert not re.search(r'(src|href)="(?!/|#board)', html)
    for asset in set(re.findall(r'"(/assets/[^"]+)"', html)):
        answer = await web.ask("GET", asset, None)
        assert answer.status_code == 200
        assert "innerHTML" not in answer.text


async def test_whatever_a_job_is_called_stays_text_on_every_page(url: str) -> None:
    app = Windlass(url, accept_unknown=True)
    async with served(app) as web:
        await app.lanes.pause(HOSTILE)
        job = await app.enqueue(
            HOSTILE, {"key": HOSTILE}, lane="pull", subject=HOSTILE, unique_key=HOSTILE, correlation_id=HOSTILE
        )
        await app.bury(job, HOSTILE)
        for path in (*PAGES, f"/jobs/{job.id}", "/jobs?columns=lane,priority,subject,attempt,worker,created"):
            assert "<script>alert" not in await shown(web, path, Role.ADMIN), path
        assert "&lt;script&gt;alert" in await shown(web, f"/jobs/{job.id}", Role.ADMIN)


async def test_the_address_filters_sorts_and_pages(web: Served) -> None:
    app = web.app
    for number in range(30):
        await app.enqueue("even" if number % 2 == 0 else "odd", {"n": number}, lane="pull", priority=number + 1)
    assert len(listed(await shown(web, "/jobs?size=10"))) == 10
    odd = await shown(web, "/jobs?task=odd&size=200")
    assert len(listed(odd)) == 15
    assert "15 jobs match" in odd
    best = listed(await shown(web, "/jobs?sort=priority&size=3"))
    assert best == sorted(best, reverse=True)
    first = await shown(web, "/jobs?size=20")
    following = re.search(r'href="(/jobs\?[^"]+)" rel="next"', first)
    assert following is not None
    second = await shown(web, following[1].replace("&amp;", "&"))
    assert len(listed(second)) == 10
    assert not set(listed(first)) & set(listed(second))
    assert "No job matches" in await shown(web, "/jobs?search=nowhere-to-be-found")
    # What a browser without scripts sends for empty fields.
    assert len(listed(await shown(web, "/jobs?search=&task=&lane=&subject=&correlation=&since=&size=25"))) == 25
    assert len(listed(await shown(web, "/jobs?state=pending,failed&size=200"))) == 30


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("/jobs?state=asleep", "state: use some of"),
        ("/jobs?size=0", "size:"),
        ("/jobs?sort=colour", "sort:"),
        ("/jobs?colour=red", "colour"),
        ("/jobs?cursor=abc", "cursor: is not one that a list gave out"),
        ("/jobs?since=yesterday", "since:"),
        ("/audit?before=0", "before:"),
        ("/dead?status=asleep", "status:"),
    ],
)
async def test_a_bad_address_is_answered_with_a_page_that_names_the_field(web: Served, address: str, complaint: str) -> None:
    html = await shown(web, address, Role.ADMIN, 400)
    assert complaint in html
    assert '<a href="/jobs">' in html


async def test_a_wrong_address_is_a_page_for_people_and_json_for_programs(web: Served) -> None:
    assert "There is nothing here" in await shown(web, "/nowhere", status=404)
    assert "There is no job 77" in await shown(web, "/jobs/77", status=404)
    assert (await web.ask("GET", "/nowhere", Role.VIEWER)).json() == {"error": "there is nothing at /nowhere"}
    assert (await web.ask("GET", "/api/v1/jobs/77", Role.VIEWER, headers=HTML)).json()["error"]


async def test_buttons_are_for_sessions_that_may_act(web: Served) -> None:
    job = await web.app.enqueue("some", lane="pull")
    paths = ("/jobs", f"/jobs/{job.id}", "/lanes")
    for path in paths:
        assert "data-url" not in await shown(web, path, Role.ADMIN)  # a program has no use for buttons
    for role, may_act in ((Role.VIEWER, False), (Role.OPERATOR, True)):
        form: dict[str, Any] = {"content": f"token={web.tokens[role]}", "headers": FORM}
        assert (await web.ask("POST", "/login", None, **form)).status_code == 303
        for path in paths:
            html = await shown(web, path, None)
            assert ("data-url" in html or "data-bulk" in html) is may_act, (role, path)


FORM = {"content-type": "application/x-www-form-urlencoded"}


async def test_a_viewer_sees_no_secret_of_a_payload(web: Served) -> None:
    job = await web.app.enqueue("secretive", {"password": "correct horse", "big": 2**62 + 1}, lane="pull")
    assert "correct horse" not in await shown(web, f"/jobs/{job.id}", Role.VIEWER)
    whole = await shown(web, f"/jobs/{job.id}", Role.OPERATOR)
    assert "correct horse" in whole
    assert str(2**62 + 1) in whole


async def test_a_job_shows_its_runs_and_its_family(url: str) -> None:
    app = Windlass(url)

    @app.task(max_attempts=1)
    async def fail() -> None:
        raise RuntimeError("broken on purpose")

    @app.task
    async def parent() -> dict[str, int]:
        await fail.enqueue()
        return {"sum": 42}

    async with served(app) as web:
        async with app.working():
            job = await parent.enqueue()
            await app.wait(job, timeout=30)
            [child] = [one for one in (await app.list()).jobs if one.task == "fail"]
            with pytest.raises(Exception, match="on purpose"):
                await app.wait(child.id, timeout=30)
        html = await shown(web, f"/jobs/{job.id}", Role.OPERATOR)
        assert f'href="/jobs/{child.id}"' in html
        assert '&#34;sum&#34;</span>: <span class="json-number">42</span>' in html
        failed = await shown(web, f"/jobs/{child.id}")
        assert "RuntimeError: broken on purpose" in failed
        assert "raise RuntimeError" in failed
        assert f'href="/jobs/{job.id}"' in failed
        dead = await shown(web, "/dead")
    assert "broken on purpose" in dead
    assert "1 open letter" in dead


async def test_jobs_can_be_listed_and_moved_by_the_engines_states(web: Served) -> None:
    job = await web.app.enqueue("some", lane="pull")
    answer = await web.ask("GET", "/api/v1/jobs?state=pending", Role.VIEWER)
    assert [one["number"] for one in answer.json()["jobs"]] == [job.id]
    moved = await web.ask("POST", "/api/v1/bulk", Role.OPERATOR, json={"action": "cancel", "filter": {"state": ["pending"]}})
    assert moved.json()["changed"] == 1
    both = await web.ask("GET", "/api/v1/jobs?state=pending&status=pending", Role.VIEWER)
    assert (both.status_code, both.json()) == (400, {"error": "state: give status or state, not both (got 'pending')"})
