"""A page that is open: it follows, keeps what its reader holds, and comes back by itself when the server was away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import TOKEN
from tests.web.server_process import running
from windlass import Windlass

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOWN = """() => {
  const copy = document.getElementById("board").cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.textContent = "";
  return copy.innerHTML;
}"""
"""What a page shows, without the ages, which go on."""
HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => isHidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
PLACE_ONCE_PAINTED = """(id) => new Promise((tell) => requestAnimationFrame(() => requestAnimationFrame(() => {
  tell([scrollY, document.getElementById(id).getBoundingClientRect().top]);
})))"""
"""How far a page is scrolled and where a row is; what is added above it moves the page with the next painting."""
COUNT_STREAMS = """
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...given) { super(...given); window.streams.push(this); }
};
"""


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)

    @app.task
    def hello(name: str = "you") -> str:
        return f"hello {name}"

    return app


def go(page: Page, path: str) -> None:
    page.goto(re.sub(r"(:\d+)/.*", rf"\1{path}", page.url))
    page.wait_for_selector("#live[data-is=on]")


def enqueue(app: Windlass, jobs: int = 1) -> list[int]:
    return [app.enqueue_sync("hello", delay="1h").id for _ in range(jobs)]


def test_a_page_comes_back_by_itself_after_the_server_was_killed(tmp_path: Path, browser: Browser) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        with running(tmp_path, WINDLASS_DATABASE_URL=url) as server:
            page.goto(f"http://127.0.0.1:{server.port}/login?next=/jobs")
            page.get_by_label("Token").fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_selector("#live[data-is=on]:text-is('live')")
            page.evaluate("document.body.dataset.same = 'yes'")
        page.wait_for_selector("#live[data-is=lost]:text-is('reconnecting')")
        with Windlass(url, accept_unknown=True) as app:
            job = app.enqueue_sync("hello", lane="pull").id
        with running(tmp_path, "--port", str(server.port), WINDLASS_DATABASE_URL=url):
            page.wait_for_selector(f"#job-{job}")
            page.wait_for_selector("#live[data-is=on]:text-is('live')")
            assert page.evaluate("document.body.dataset.same") == "yes"


def test_focus_selection_and_scrolling_survive_a_refresh(app: Windlass, page: Page) -> None:
    jobs = enqueue(app, 60)
    go(page, "/jobs?size=200")
    row = jobs[20]
    page.locator(f"#job-{row} a").first.focus()
    page.evaluate(f"getSelection().selectAllChildren(document.querySelector('#job-{row} .task a'))")
    page.locator("#pick summary").evaluate("(one) => one.parentElement.open = true")
    before: Any = page.evaluate(PLACE_ONCE_PAINTED, f"job-{row}")
    assert before[0] > 100
    [new] = enqueue(app)
    page.wait_for_selector(f"#job-{new}", state="attached")
    after: Any = page.evaluate(PLACE_ONCE_PAINTED, f"job-{row}")
    assert abs(after[1] - before[1]) <= 2, "the row that was read has moved"
    assert page.evaluate("document.activeElement.closest('tr').id") == f"job-{row}"
    assert page.evaluate("getSelection().toString()").strip() == "hello"
    assert page.locator("#pick[open]").count() == 1


def test_a_row_that_moves_keeps_the_focus_and_the_mark(app: Windlass, page: Page) -> None:
    _, low, _ = enqueue(app, 3)
    go(page, "/jobs?sort=priority&order=desc")
    while page.evaluate("document.querySelector('tr.here')?.id") != f"job-{low}":
        page.keyboard.press("j")
    app.edit_sync(low, priority=99)
    page.wait_for_selector(f"tbody tr:first-child#job-{low}")
    assert page.evaluate("document.activeElement.closest('tr').id") == f"job-{low}"
    assert page.evaluate("document.querySelector('tr.here').id") == f"job-{low}"


def test_nothing_moves_while_a_question_is_open(app: Windlass, page: Page) -> None:
    [job] = enqueue(app)
    go(page, f"/jobs/{job}")
    page.get_by_role("button", name="Priority …").click()
    before = page.evaluate(SHOWN)
    app.edit_sync(job, priority=88)
    enqueue(app)
    page.wait_for_selector("#live[data-is=held]:text-is('paused')")
    assert page.evaluate(SHOWN) == before
    page.keyboard.press("Escape")
    page.wait_for_selector("#live[data-is=on]:text-is('live')")
    page.wait_for_selector("#board:has-text('88')")


def test_what_was_closed_stays_closed(app: Windlass, page: Page) -> None:
    [job] = enqueue(app)
    app.bury_sync(job, "broken")
    go(page, "/jobs?task=hello")
    opened = "() => [...document.querySelectorAll('#board details[open]')].length"
    page.evaluate("() => { for (const one of document.querySelectorAll('#board details')) one.open = false; }")
    [new] = enqueue(app)
    page.wait_for_selector(f"#job-{new}")
    assert page.evaluate(opened) == 0


def test_a_tab_that_is_hidden_holds_no_connection_and_catches_up(app: Windlass, page: Page) -> None:
    page.add_init_script(COUNT_STREAMS)
    go(page, "/jobs?task=hello")
    page.evaluate(HIDE, True)  # noqa: FBT003 - the argument of the script
    assert page.evaluate("window.streams.map((one) => one.readyState)") == [2]
    [job] = enqueue(app)
    page.wait_for_timeout(1500)
    assert page.locator(f"#job-{job}").count() == 0
    page.evaluate(HIDE, False)  # noqa: FBT003 - the argument of the script
    page.wait_for_selector(f"#job-{job}")
    assert page.evaluate("window.streams.length") == 2


def test_the_page_of_a_job_that_is_deleted_says_so(app: Windlass, page: Page, provoked: list[str]) -> None:
    [job] = enqueue(app)
    go(page, f"/jobs/{job}")
    provoked.append("status of 404")
    app.delete_sync(job)
    page.wait_for_selector(f"h1:text-is('There is no job {job}')")
    page.wait_for_selector("#live[data-is=on]")
