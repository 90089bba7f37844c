"""One job in a real browser: what its page draws, follows and does, by mouse and by keyboard, and who may do what."""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.test_dashboard import go, said, state
from tests.remote.test_docs import working
from windlass import JobContext, JobState, Windlass

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN, lease_seconds="4s")
    gates = [threading.Event() for _ in range(3)]

    @app.task
    def hello(name: str = "you", number: int = 0) -> str:
        return f"hello {name} {number}"

    @app.task(max_attempts=1)
    def fail() -> None:
        raise RuntimeError("broken")

    @app.task
    def count(ctx: JobContext) -> None:
        for place, gate in enumerate(gates, start=1):
            for line in range(1, 61):
                logging.getLogger("app").warning("step %d, line %d", place, line)
            ctx.progress_sync(count=place, message=f"step {place}", cursor=f"c{place}")
            assert gate.wait(30)

    @app.task
    async def parent(ctx: JobContext) -> None:
        await ctx.enqueue(hello, "child")

    app.gates = gates  # type: ignore[attr-defined]  # a test's own handle
    return app


def token_for(page: Page, role: str) -> str:
    base = re.sub(r"(:\d+)/.*", r"\1", page.url)
    made = page.request.post(
        f"{base}/api/v1/tokens", headers={"authorization": f"Bearer {TOKEN}"}, data={"name": f"a {role}", "role": role}
    )
    assert made.ok, made.text()
    return str(made.json()["secret"])


def log_in_as(page: Page, role: str) -> None:
    secret = token_for(page, role)
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(re.compile(r"/login"))
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(re.compile(r":\d+/$"))


def test_progress_and_messages_are_followed_while_it_runs(app: Windlass, page: Page) -> None:
    with working(app):
        job = app.enqueue_sync("count", target_count=4).id
        go(page, f"/jobs/{job}")
        page.wait_for_selector("#message:text-is('step 1')")
        page.wait_for_selector("code:text-is('c1')")
        for place, gate in enumerate(app.gates[:2], start=2):  # type: ignore[attr-defined]  # see the fixture
            gate.set()
            page.wait_for_selector(f"#message:text-is('step {place}')")
        assert page.locator("progress[value='3'][max='4']").count() == 1
        page.wait_for_selector("#messages div:has-text('step 3')")
        lines = page.locator("#messages div").all_inner_texts()
        assert [line.split(" ", 1)[1] for line in lines] == ["step 1", "step 2", "step 3"]
        app.gates[2].set()  # type: ignore[attr-defined]  # see the fixture
        page.wait_for_selector(".headline .badge:text-is('completed')")


LOG_IS_AT_ITS_END = """() => {
    const log = document.getElementById("log-1");
    return log.scrollHeight > log.clientHeight && log.scrollHeight - log.scrollTop - log.clientHeight < 2;
}"""


def test_the_log_is_followed_while_it_runs_unless_somebody_scrolls_back(app: Windlass, page: Page) -> None:
    first, second, last = app.gates  # type: ignore[attr-defined]  # see the fixture
    with working(app):
        job = app.enqueue_sync("count").id
        go(page, f"/jobs/{job}")
        page.wait_for_selector("#run-1[open] #log-1:has-text('step 1, line 60')")
        page.wait_for_function(LOG_IS_AT_ITS_END)
        first.set()
        page.wait_for_selector("#log-1:has-text('step 2, line 60')")
        page.wait_for_function(LOG_IS_AT_ITS_END)
        page.evaluate("document.getElementById('log-1').scrollTop = 0")
        second.set()
        page.wait_for_selector("#log-1:has-text('step 3, line 60')")
        assert page.evaluate("document.getElementById('log-1').scrollTop") == 0
        last.set()
        page.wait_for_selector(".headline .badge:text-is('completed')")
        # It stays open in front of who reads it.
        page.wait_for_selector("#run-1.s-completed[open] #log-1:has-text('step 1, line 1')")


def test_a_fold_stays_as_it_was_left_while_the_page_follows(app: Windlass, page: Page) -> None:
    with working(app):
        job = app.enqueue_sync("fail").id
        with pytest.raises(Exception, match="broken"):
            app.wait_sync(job, timeout=30)
        go(page, f"/jobs/{job}")
        page.wait_for_selector("#run-1[open] .frame-own:has-text('raise RuntimeError')")
        page.locator("#run-1 summary").click()
        page.wait_for_selector("#run-1:not([open])")
        before = page.locator("#board").get_attribute("data-at")
        app.boost_sync(job)
        page.wait_for_function("(before) => document.getElementById('board').dataset.at !== before", arg=before)
        assert page.locator("#run-1[open]").count() == 0
        # The time line leads to the run, and opens it.
        page.locator("a.line").first.press("Enter")
        page.wait_for_selector("#run-1[open]")


def test_big_integers_stay_exact_from_the_page_through_an_edit_and_a_clone(app: Windlass, page: Page) -> None:
    job = app.enqueue_sync("hello", {"name": "ann", "number": 2**62 + 1}, delay="1h").id
    go(page, f"/jobs/{job}")
    page.wait_for_selector(f"#payload .json-number:text-is('{2**62 + 1}')")
    page.keyboard.press("e")
    page.get_by_label("Payload (JSON)").fill('{"name": "eve", "number": 4611686018427387907}')
    page.get_by_label("Attempts at most").fill("7")
    page.get_by_label("Timeout, as in 30s or 5m").fill("90s")
    page.locator("#ask-yes").click()
    said(page, "The job is changed.")
    changed = app.get_sync(job)
    assert (changed.payload_json, changed.max_attempts, changed.timeout_us) == (
        '{"name":"eve","number":4611686018427387907}',
        7,
        90_000_000,
    )
    page.wait_for_selector("#payload .json-number:text-is('4611686018427387907')")
    app.cancel_sync(job)
    page.get_by_role("button", name="Clone and edit …").click()
    assert "4611686018427387907" in page.get_by_label("Payload (JSON)").input_value()
    page.get_by_label("Payload (JSON)").fill('{"number": 4611686018427387909}')
    page.locator("#ask-yes").click()
    page.wait_for_url(re.compile(rf"/jobs/{job + 1}$"))
    copy = app.get_sync(job + 1)
    assert (copy.payload_json, copy.parent_id) == ('{"number":4611686018427387909}', job)


def press(page: Page, key: str) -> None:
    """Press the key of an action once the page offers it: it is drawn anew after the one before."""
    page.wait_for_selector(f"button[data-shortcut='{key}']")
    page.keyboard.press(key)


def test_actions_of_a_job_have_keys(app: Windlass, page: Page) -> None:
    job = app.enqueue_sync("hello", delay="1h").id
    go(page, f"/jobs/{job}")
    press(page, "p")
    said(page, "Paused.")
    assert state(app, job) is JobState.PAUSED
    press(page, "u")
    said(page, "Resumed.")
    press(page, "b")
    said(page, "Its priority is higher by 10.")
    assert app.get_sync(job).priority == 10
    press(page, "n")
    said(page, "It is due now.")
    assert state(app, job) is JobState.PENDING
    press(page, "c")
    page.wait_for_selector("#ask-title:text-is('Cancel this job?')")
    page.keyboard.press("Escape")
    assert state(app, job) is JobState.PENDING
    page.keyboard.press("?")
    page.wait_for_selector("#keys dt:has-text('c') + dd:text-is('Cancel')")
    page.get_by_label("Use keys without Ctrl in this browser").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("c")
    assert page.locator("#ask").is_hidden()
    page.get_by_role("button", name="keys").click()
    page.get_by_label("Use keys without Ctrl in this browser").check()
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.wait_for_selector("#ask-title:text-is('Cancel this job?')")


def test_a_running_job_is_failed_for_good_and_its_lease_taken(app: Windlass, page: Page) -> None:
    with working(app):
        job = app.enqueue_sync("count", target_count=4).id
        go(page, f"/jobs/{job}")
        page.wait_for_selector("#message:text-is('step 1')")
        page.get_by_role("button", name="Take the lease …").click()
        page.locator("#ask-yes").click()
        said(page, "The lease is over.")
        other = app.enqueue_sync("count", target_count=4).id
        go(page, f"/jobs/{other}")
        page.get_by_role("button", name="Fail for good …").click()
        page.get_by_label("Error").fill("by hand")
        page.locator("#ask-yes").click()
        said(page, "It has failed for good.")
        assert (state(app, other), app.get_sync(other).last_error) == (JobState.FAILED, "by hand")
        for gate in app.gates:  # type: ignore[attr-defined]  # see the fixture
            gate.set()


def test_the_family_of_a_job_is_drawn_and_leads_to_its_correlation(app: Windlass, page: Page) -> None:
    with working(app):
        job = app.enqueue_sync("parent", correlation_id="order 7").id
        app.wait_sync(job, timeout=30)
        app.wait_sync(job + 1, timeout=30)
    go(page, f"/jobs/{job}")
    page.wait_for_selector(f"#span-{job + 1} .t-completed")
    page.get_by_role("link", name="the whole correlation").click()
    page.wait_for_url(re.compile(r"/correlations/order%207$"))
    page.wait_for_selector(f"#span-{job} svg[role=img][aria-label^='completed, waited']")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/jobs/{job + 1}$"))
    for width in (320, 1360):
        page.set_viewport_size({"width": width, "height": 800})
        go(page, "/correlations/order%207")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("role", "may_act"), [("viewer", False), ("operator", True)])
def test_a_role_sees_the_actions_it_may_do(app: Windlass, page: Page, role: str, *, may_act: bool) -> None:
    job = app.enqueue_sync("hello", {"name": "ann"}, delay="1h").id
    log_in_as(page, role)
    go(page, f"/jobs/{job}")
    assert (page.get_by_role("button", name="Pause").count() == 1) is may_act
    page.keyboard.press("p")
    if may_act:
        said(page, "Paused.")
    go(page, "/jobs")
    assert (page.locator("[data-bulk]").count() > 0) is may_act
    assert (page.get_by_label(f"Select job {job}").count() == 1) is may_act
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find a page, task, lane, job or action").fill(f"cancel {job}")
    page.wait_for_selector("#palette [role=option]")
    assert (page.get_by_role("option", name=f"Cancel job {job}").count() == 1) is may_act
    assert state(app, job) is (JobState.PAUSED if may_act else JobState.SCHEDULED)
