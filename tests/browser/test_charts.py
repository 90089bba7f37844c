"""Charts in a real browser: their numbers by pointer and by keyboard, and lanes paused from the first page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.watching import until
from tests.remote.test_docs import working
from windlass import Windlass

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)

    @app.task
    def hello() -> str:
        return "hello"

    @app.task(max_attempts=1)
    def fail() -> None:
        raise RuntimeError("broken")

    return app


@pytest.fixture
def worked(app: Windlass) -> Windlass:
    with working(app):
        for _ in range(3):
            app.wait_sync(app.enqueue_sync("hello"), timeout=30)
        with pytest.raises(Exception, match="broken"):
            app.wait_sync(app.enqueue_sync("fail"), timeout=30)
    return app


def go(page: Page, path: str) -> None:
    page.goto(re.sub(r"(:\d+)/.*", rf"\1{path}", page.url))
    page.wait_for_selector("html.scripted")


def row(page: Page, number: int) -> str:
    """Return when a point of the charts is, as the table of their numbers has it."""
    return page.locator("#numbers tbody tr").nth(number).locator("th").text_content() or ""


def reading(page: Page) -> str:
    return page.locator(".reading-text:visible").text_content() or ""


@pytest.mark.usefixtures("worked")
def test_a_chart_is_read_by_the_pointer(page: Page) -> None:
    go(page, "/")
    chart = page.locator("#chart-throughput .canvas")
    box: Any = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 60 * 10.5, box["y"] + 30)
    # Waited for, because a minute may end between two looks.
    until(page, lambda: reading(page) == f"{row(page, 10)}: Completed 0, Failed 0, Cancelled 0")
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 30)

    def is_all_there() -> bool:
        completed = re.search(r"Completed (\d+), Failed (\d+)", reading(page))
        before = page.locator("#numbers tbody tr").nth(58).locator("td").first.text_content()
        return completed is not None and int(completed[1]) + int(before or 0) == 3

    until(page, is_all_there)
    page.mouse.move(5, 5)
    page.wait_for_selector(".reading-text", state="hidden")


def test_a_chart_is_read_by_the_keyboard(worked: Windlass, page: Page) -> None:
    go(page, "/")
    chart = page.locator("#chart-wait .canvas")
    chart.focus()
    page.keyboard.press("End")
    until(page, lambda: reading(page).startswith(f"{row(page, 59)}: Wait p50 "))
    page.keyboard.press("ArrowLeft")
    until(page, lambda: reading(page).startswith(f"{row(page, 58)}: Wait p50 "))
    page.keyboard.press("Home")
    until(page, lambda: reading(page) == f"{row(page, 0)}: Wait p50 —, Wait p95 —, Wait p99 —")
    # A redrawn page is still being read.
    page.wait_for_selector(f"#job-{worked.enqueue_sync('hello', delay='1h').id}")
    assert page.locator("#chart-wait line.reading.on").count() == 1
    until(page, lambda: reading(page).startswith(row(page, 0)))
    page.keyboard.press("Escape")
    page.wait_for_selector(".reading-text", state="hidden")
    # A tile is a link with its last hour in it.
    page.locator("#figure-dead a").focus()
    page.keyboard.press("End")
    assert re.fullmatch(r"\d\d:\d\d UTC: Failed [01], Error rate .*", reading(page))


@pytest.mark.usefixtures("worked")
def test_a_histogram_is_read_too(page: Page) -> None:
    go(page, "/tasks/hello")
    page.locator("#histogram-run .canvas").focus()
    page.keyboard.press("End")
    assert re.fullmatch(r"[\d.]+ m?s to [\d.]+ m?s: Runs \d+, Share [\d.]+ %", reading(page))


def test_a_lane_is_paused_and_resumed_from_the_first_page(app: Windlass, page: Page) -> None:
    app.enqueue_sync("hello")
    go(page, "/")
    lane = page.locator("table.lanes tr:has-text('default')")
    lane.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".toast:has-text('Nothing more of this lane is started.')")
    assert [one.name for one in app.lanes.list_sync() if one.paused_at] == ["default"]
    page.wait_for_selector("#alerts a:has-text('lane default is paused, 1 waiting')")
    # The health line has the same remedy, by keyboard.
    page.locator("#alerts li:has-text('lane default') button").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".toast:has-text('The lane is open.')")
    assert [one.name for one in app.lanes.list_sync() if one.paused_at] == []


def test_failed_jobs_are_tried_again_from_the_first_page(worked: Windlass, page: Page) -> None:
    go(page, "/")
    page.locator("section:has(#failures-title)").get_by_role("button", name="Retry …").click()
    page.locator("#ask-yes").click()
    page.wait_for_selector(".toast:has-text('They run again.')")
    assert [job.state.value for job in worked.list_sync().jobs if job.task == "fail"] == ["pending"]


def test_a_task_is_paused_on_its_page(worked: Windlass, page: Page) -> None:
    go(page, "/tasks/hello")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".toast:has-text('No job of this task is started.')")
    page.wait_for_selector(".headline .badge:text-is('paused')")
    found = worked.known_tasks.get_sync("hello")
    assert found is not None
    assert found.paused_at is not None


@pytest.mark.usefixtures("worked")
def test_a_range_is_chosen_with_a_form(page: Page) -> None:
    go(page, "/trends")
    page.get_by_label("Task").fill("fail")
    page.get_by_label("Compare with").select_option("before")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile(r"task=fail.*compare=before"))
    assert "1 runs in 6" in (page.locator("#chart-throughput .summary").text_content() or "")
    page.get_by_role("link", name="24h").click()
    page.wait_for_url(re.compile(r"range=24h&task=fail&compare=before"))
