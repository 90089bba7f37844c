"""The list of jobs in a real browser: filters as tokens, many jobs at once with progress, and what can be taken back."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.test_dashboard import go, said, state
from tests.browser.watching import until
from windlass import JobState, Windlass
from windlass.core.job import NewJob

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)

    @app.task
    def hello(name: str = "you") -> str:
        return f"hello {name}"

    @app.task(lane="slow lane")
    def report() -> None:
        pass

    return app


def many(app: Windlass, jobs: int, **options: object) -> list[int]:
    made = app.enqueue_jobs_sync([NewJob(task="hello", **options) for _ in range(jobs)])  # type: ignore[arg-type]
    return [one.id for one in made]


def options_of(page: Page) -> list[str]:
    return page.locator("#suggestions [role=option]").all_inner_texts()


def test_filters_are_typed_chosen_and_removed_by_keyboard(app: Windlass, page: Page) -> None:
    app.enqueue_sync("hello", {"name": "ann"}, delay="1h")
    other = app.enqueue_sync("report", priority=75).id
    go(page, "/jobs")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search, or a filter such as task:name")
    page.keyboard.type("ta")
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    assert page.locator(f"#{field.get_attribute('aria-activedescendant')}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert field.input_value() == "task:"
    page.keyboard.type("rep")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?task=report$"))
    page.wait_for_selector(f"#job-{other}")
    assert page.locator("tr[data-id]").count() == 1
    # Several at once, with a text beside them; a name with a space is quoted.
    page.keyboard.press("/")
    page.keyboard.type('lane:"slow lane" priority:75 state:pending report')
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"search=report"))
    assert page.locator(".token").count() == 4
    assert page.locator("tr[data-id]").count() == 1
    # Backspace in an empty field takes the last one away.
    page.locator("#search").fill("")
    page.locator("#search").press("Backspace")
    page.wait_for_url(lambda url: "search=" not in url)
    assert page.locator(".token").count() == 3
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    assert options_of(page)[0].startswith("state:")
    page.keyboard.press("Escape")
    assert page.locator("#suggestions").is_hidden()


def test_filters_are_chosen_and_removed_by_mouse(app: Windlass, page: Page) -> None:
    hello = app.enqueue_sync("hello", delay="1h").id
    app.enqueue_sync("report")
    go(page, "/jobs")
    page.locator("#search").click()
    page.get_by_role("option", name="state:").click()
    page.get_by_role("option", name="state: scheduled").click()
    page.wait_for_url(re.compile(r"state=scheduled"))
    assert page.locator("tr[data-id]").count() == 1
    page.wait_for_selector(f"#job-{hello}")
    page.locator("#search").click()
    page.get_by_role("option", name="since:").click()
    page.get_by_role("option", name="the last 1 hour").click()
    page.wait_for_url(re.compile(r"since=20"))
    page.wait_for_selector(f"#job-{hello}")
    page.get_by_role("link", name="state scheduled").click()
    page.wait_for_url(lambda url: "state=" not in url and "since=" in url)
    assert page.locator("tr[data-id]").count() == 2
    page.get_by_role("link", name="Clear").click()
    page.wait_for_url(re.compile(r"/jobs\??$"))


def test_columns_are_chosen_and_kept_in_the_address(app: Windlass, page: Page) -> None:
    app.enqueue_sync("hello", correlation_id="c/7")
    go(page, "/jobs")
    page.get_by_text("Columns").click()
    page.get_by_role("checkbox", name="Correlation").click()
    page.wait_for_url(re.compile(r"columns=lane%2Ccorrelation"))
    page.get_by_role("link", name="c/7").click()
    page.wait_for_url(re.compile(r"/correlations/c%2F7$"))
    page.wait_for_selector("tr[id^=span-]")


def test_a_large_bulk_asks_for_the_number_shows_progress_and_can_be_stopped(app: Windlass, page: Page) -> None:
    jobs = many(app, 2600)
    go(page, "/jobs?task=hello")
    page.get_by_role("button", name="Select all 2,600").click()
    page.get_by_role("button", name="Cancel …", exact=True).click()
    page.wait_for_selector("#ask-title:text-is('Cancel 2,600 jobs?')")
    page.locator("#ask-yes").click()
    assert page.locator("#ask").is_visible(), "nothing happens before the number is typed"
    page.get_by_label("Type 2600 to confirm").fill("2599")
    page.locator("#ask-yes").click()
    page.wait_for_selector("#ask-problem:has-text('That is not 2600.')")

    # The second part waits until the bulk was seen and stopped.
    parts: list[Route] = []

    def hold_up(route: Route) -> None:
        parts.append(route)
        if len(parts) == 1:
            route.continue_()

    page.route("**/api/v1/bulk", hold_up)
    page.get_by_label("Type 2600 to confirm").fill("2600")
    page.locator("#ask-yes").click()
    page.wait_for_selector("#bulk-text:text-is('500 of 2,600')")
    assert page.get_by_role("progressbar", name="Progress of the bulk").is_visible()
    page.get_by_role("button", name="Stop here").click()
    until(page, lambda: len(parts) == 2)
    parts[1].continue_()
    said(page, "stopped before the rest")
    states = [state(app, one) for one in jobs[::100]]
    assert JobState.CANCELLED in states
    assert JobState.PENDING in states
    page.unroute("**/api/v1/bulk")
    page.wait_for_selector("#bulk-progress", state="hidden")
    page.get_by_role("button", name="Select all 2,600").click()
    page.get_by_role("button", name="Cancel …", exact=True).click()
    page.get_by_label("Type 2600 to confirm").fill("2600")
    page.keyboard.press("Enter")
    said(page, "left as they were.")
    assert {state(app, one) for one in jobs[::100]} == {JobState.CANCELLED}


def test_undo_takes_back_what_was_changed_and_nothing_else(app: Windlass, page: Page) -> None:
    jobs = many(app, 3, delay=timedelta(hours=1))
    app.pause_sync(jobs[0])
    go(page, "/jobs?task=hello")
    page.get_by_label("Select every job of this page").check()
    page.get_by_role("button", name="Pause", exact=True).click()
    page.locator("#ask-yes").click()
    said(page, "2 changed, 1 left as they were.")
    page.get_by_role("button", name="Undo").click()
    said(page, "Taken back.")
    assert [state(app, one) for one in jobs] == [JobState.PAUSED, JobState.SCHEDULED, JobState.SCHEDULED]
    page.get_by_label("Select every job of this page").check()
    page.get_by_role("button", name="Priority …", exact=True).click()
    page.get_by_label("Priority (1 to 100)").fill("90")
    page.keyboard.press("Enter")
    said(page, "3 changed.")
    assert {app.get_sync(one).priority for one in jobs} == {90}
    page.get_by_role("button", name="Undo").last.click()
    said(page, "Taken back.")
    assert {app.get_sync(one).priority for one in jobs} == {0}


def test_rows_are_selected_and_acted_on_by_keys(app: Windlass, page: Page) -> None:
    first, second = many(app, 2, delay=timedelta(hours=1))
    go(page, "/jobs?task=hello")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.wait_for_selector("#bulk-chosen:text-is('1 selected')")
    page.keyboard.press("p")
    page.wait_for_selector("#ask-title:text-is('Pause 1 job?')")
    page.keyboard.press("Enter")
    said(page, "1 changed.")
    assert (state(app, first), state(app, second)) == (JobState.SCHEDULED, JobState.PAUSED)
    # With nothing selected, the row that j and k have gone to is meant.
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.wait_for_selector("#ask-title:text-is('Run now 1 job?')")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#job-{first} .badge:text-is('pending')")
    assert state(app, first) is JobState.PENDING
    page.keyboard.press("?")
    page.wait_for_selector("#keys dt:has-text('p') + dd:text-is('Pause')")


def test_finished_jobs_are_requeued_as_new_ones(app: Windlass, page: Page) -> None:
    [job] = many(app, 1)
    app.cancel_sync(job)
    go(page, "/jobs?task=hello")
    page.get_by_label(f"Select job {job}").check()
    page.get_by_role("button", name="Requeue …").click()
    page.wait_for_selector("#ask-text:has-text('A new job is made from each that has ended.')")
    page.locator("#ask-yes").click()
    said(page, "1 changed.")
    [copy] = [one for one in app.list_sync().jobs if one.parent_id == job]
    assert (copy.state, copy.task) == (JobState.PENDING, "hello")
