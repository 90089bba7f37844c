"""The command palette in a real browser: what it finds, what it does, and that it leaves things as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.test_dashboard import go, said, state
from tests.remote.test_docs import working
from windlass import JobState, Windlass

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)

    @app.task(name="send-newsletter", lane="mail")
    def send(name: str = "you") -> str:
        return name

    return app


def found(page: Page, typed: str, first: str) -> None:
    """Type into the palette and wait until the first that it finds is this one."""
    page.locator("#palette-input").fill(typed)
    page.wait_for_selector(f"#command-0 .clip:text-is('{first}')")


def test_pages_tasks_lanes_and_jobs_are_found_by_some_letters(app: Windlass, page: Page) -> None:
    job = app.enqueue_sync("send-newsletter", delay="1h").id
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Command palette")
    assert dialog.is_visible()
    field = page.get_by_role("combobox", name="Find a page, task, lane, job or action")
    assert field.evaluate("(field) => field === document.activeElement")
    found(page, "recur", "Recurring")
    assert field.get_attribute("aria-activedescendant") == "command-0"
    page.keyboard.press("ArrowDown")
    assert page.locator("#command-1").get_attribute("aria-selected") == "true"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/recurring$"))
    page.wait_for_selector("html.scripted")
    with working(app):
        # Its worker has declared the tasks.
        app.wait_sync(app.enqueue_sync("send-newsletter"), timeout=30)
        page.keyboard.press("Control+k")
        found(page, "sndnews", "send-newsletter")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/jobs\?task=send-newsletter$"))
    page.get_by_role("button", name="Find Ctrl K").click()
    found(page, str(job), f"Job {job}")
    page.locator("#command-0").click()
    page.wait_for_url(re.compile(rf"/jobs/{job}$"))
    page.wait_for_selector("html.scripted")
    page.keyboard.press("Control+k")
    page.locator("#palette-input").fill("no such thing <b>")
    page.wait_for_selector("#palette [role=option]:has-text('Jobs with “no such thing <b>”')")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs\?search=no%20such"))


def test_actions_of_the_page_and_of_any_job_are_done_from_the_palette(app: Windlass, page: Page) -> None:
    job = app.enqueue_sync("send-newsletter", delay="1h").id
    go(page, f"/jobs/{job}")
    page.keyboard.press("Control+k")
    found(page, "paus", "Pause")
    page.keyboard.press("Enter")
    said(page, "Paused.")
    assert state(app, job) is JobState.PAUSED
    go(page, "/workers")
    page.keyboard.press("Control+k")
    found(page, f"resume {job}", f"Resume job {job}")
    page.keyboard.press("Enter")
    said(page, f"Resume: job {job}.")
    assert state(app, job) is not JobState.PAUSED
    page.keyboard.press("Control+k")
    found(page, "pause lane mail", "Pause lane mail")
    page.keyboard.press("Enter")
    said(page, "Paused.")
    assert [lane.name for lane in app.lanes.list_sync() if lane.paused_at] == ["mail"]
    page.keyboard.press("Control+k")
    found(page, f"cancel {job}", f"Cancel job {job}")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#ask-title:text-is('Cancel job {job}?')")
    page.locator("#ask-yes").click()
    said(page, f"Cancel: job {job}.")
    assert state(app, job) is JobState.CANCELLED


def test_leaving_the_palette_gives_the_focus_back(app: Windlass, page: Page) -> None:
    app.enqueue_sync("send-newsletter", delay="1h")
    go(page, "/jobs")
    page.locator("#search").focus()
    page.keyboard.press("Control+k")
    page.keyboard.type("la")
    page.keyboard.press("Escape")
    assert page.locator("#palette").is_hidden()
    assert page.evaluate("document.activeElement.id") == "search"
    page.locator("#search").press("Escape")
    page.keyboard.press("?")
    page.keyboard.press("Control+k")
    assert page.locator("#palette").is_hidden(), "one dialog at a time"
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 320, "height": 700})
    page.get_by_role("button", name="Find").click()
    page.wait_for_selector("#palette [role=option]")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.mouse.click(5, 690)
    assert page.locator("#palette").is_hidden()
