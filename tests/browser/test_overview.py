"""The first page in a real browser: it follows what happens without a reload, and breaks none of its own rules."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.watching import until
from tests.remote.test_docs import working
from windlass import Windlass

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)
    gate = threading.Event()

    @app.task
    def hello() -> str:
        return "hello"

    @app.task(max_attempts=1)
    def fail() -> None:
        raise RuntimeError("<b>broken</b>")

    @app.task
    def wait() -> None:
        assert gate.wait(20)

    app.gate = gate  # type: ignore[attr-defined]  # a test's own handle
    return app


def shown(page: Page, state: str, jobs: int) -> None:
    page.wait_for_selector(f'[data-count="{state}"]:text-is("{jobs}")')


def test_the_page_follows_what_happens_without_a_reload(app: Windlass, page: Page) -> None:
    page.evaluate("document.body.dataset.same = 'yes'")
    page.wait_for_selector("#live[data-is=on]")
    shown(page, "pending", 0)
    page.get_by_role("button", name="Run a hello job").click()
    shown(page, "pending", 1)
    page.wait_for_selector("#jobs-title ~ div tr:has-text('hello') .badge:text-is('pending')")
    page.wait_for_selector("#start", state="detached")
    with working(app):
        shown(page, "completed", 1)
        app.enqueue_sync("wait")
        shown(page, "running", 1)
        app.enqueue_sync("fail")
        shown(page, "failed", 1)
        page.wait_for_selector(".error:text-is('RuntimeError: <b>broken</b>')")
        page.wait_for_selector("tr.s-running time[data-runs]")
        app.gate.set()  # type: ignore[attr-defined]  # see the fixture
        shown(page, "completed", 2)
    assert page.evaluate("document.body.dataset.same") == "yes"
    assert page.locator("b").count() == 0


def test_no_number_is_ahead_of_the_others(app: Windlass, page: Page) -> None:
    page.wait_for_selector("#live[data-is=on]")
    looks: list[Route] = []
    is_held = threading.Event()
    is_held.set()

    def hold_up(route: Route) -> None:
        if is_held.is_set():
            looks.append(route)
        else:
            route.continue_()

    page.route(re.compile(r":\d+/$"), hold_up)
    app.enqueue_sync("hello")
    until(page, lambda: bool(looks))
    # The page has heard of the job, and has not been drawn anew yet.
    assert page.locator('[data-count="pending"]').all_inner_texts() == ["0", "0"]
    is_held.clear()
    for look in looks:
        look.continue_()
    shown(page, "pending", 1)
    page.wait_for_selector("#jobs-title ~ div tr:has-text('hello')")
    assert page.locator('[data-count="pending"]').all_inner_texts() == ["1", "1"]


def test_a_traceback_opens_in_its_row_and_stays_open_while_the_page_follows(app: Windlass, page: Page) -> None:
    with working(app):
        app.enqueue_sync("fail")
        page.click(".trace summary:text-is('RuntimeError: <b>broken</b>')")
        page.wait_for_selector(".trace pre:has-text('raise RuntimeError')")
        app.enqueue_sync("hello")
        shown(page, "completed", 1)
        page.wait_for_selector("tr:has-text('hello')")
        assert page.locator(".trace[open]").count() == 1
    page.set_viewport_size({"width": 360, "height": 740})
    widths: Any = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_the_page_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    widths: Any = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
