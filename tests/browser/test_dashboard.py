"""The pages of the dashboard in a real browser: every action has its effect in the database, by mouse and by keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import TOKEN
from tests.remote.test_docs import working
from windlass import JobState, Windlass
from windlass.core.job import NewJob

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)

    @app.task
    def hello(name: str = "you") -> str:
        return f"hello {name}"

    @app.task(max_attempts=1)
    def fail() -> None:
        raise RuntimeError("broken")

    @app.task(every="1h")
    def hourly() -> None:
        pass

    return app


def go(page: Page, path: str) -> None:
    page.goto(re.sub(r"(:\d+)/.*", rf"\1{path}", page.url))
    page.wait_for_selector("html.scripted" if path != "/reference" else "#reference details")


def said(page: Page, text: str) -> None:
    """Wait until the page says this; what was heard once does not count again."""
    toast = page.wait_for_selector(f".toast:not([data-heard]):has-text('{text}')", state="attached")
    assert toast is not None
    toast.evaluate("(toast) => { toast.dataset.heard = ''; }")


def state(app: Windlass, job: int) -> JobState:
    return app.get_sync(job).state


def test_one_job_is_acted_on_from_its_page(app: Windlass, page: Page, provoked: list[str]) -> None:
    job = app.enqueue_sync("hello", delay="1h").id
    go(page, f"/jobs/{job}")
    page.get_by_role("button", name="Pause").click()
    said(page, "Paused.")
    assert state(app, job) is JobState.PAUSED
    page.get_by_role("button", name="Undo").click()
    said(page, "Taken back.")
    assert state(app, job) is not JobState.PAUSED
    page.get_by_role("button", name="Edit …").click()
    page.get_by_label("Payload (JSON)").fill('{"name": "ann", "big": 4611686018427387905}')
    provoked.append("status of 400")
    page.locator("#ask-yes").click()
    page.wait_for_selector(".toast.bad:has-text('big')")
    page.get_by_role("button", name="Edit …").click()
    page.get_by_label("Payload (JSON)").fill("{")
    page.locator("#ask-yes").click()
    page.wait_for_selector("#ask-problem:has-text('JSON')")
    page.get_by_label("Payload (JSON)").fill('{"name": "ann"}')
    page.locator("#ask-yes").click()
    said(page, "The job is changed.")
    assert app.get_sync(job).payload_json == '{"name":"ann"}'
    page.get_by_role("button", name="Priority …").click()
    page.get_by_label("Priority (1 to 100)").fill("77")
    page.keyboard.press("Enter")
    said(page, "The priority is set.")
    assert app.get_sync(job).priority == 77
    page.get_by_role("button", name="Cancel …").click()
    page.keyboard.press("Escape")
    assert state(app, job) is not JobState.CANCELLED
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_label("Reason (optional)").fill("not needed")
    page.keyboard.press("Enter")
    said(page, "Cancelled.")
    assert state(app, job) is JobState.CANCELLED
    page.get_by_role("button", name="Clone", exact=True).click()
    page.wait_for_url(re.compile(rf"/jobs/{job + 1}$"))
    page.get_by_role("button", name="Delete …").click()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs$"))
    assert [one.id for one in app.list_sync().jobs if one.task == "hello"] == [job]


def test_many_jobs_are_selected_and_acted_on(app: Windlass, page: Page) -> None:
    jobs = [app.enqueue_sync("hello", delay="1h").id for _ in range(5)]
    go(page, "/jobs?task=hello&size=3")
    page.get_by_label(f"Select job {jobs[4]}").check()
    page.get_by_label(f"Select job {jobs[3]}").check()
    page.wait_for_selector("#bulk-chosen:text-is('2 selected')")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.wait_for_selector("#ask-title:text-is('Pause 2 jobs?')")
    page.locator("#ask-yes").click()
    said(page, "2 changed.")
    assert [state(app, job) for job in jobs].count(JobState.PAUSED) == 2
    page.get_by_role("button", name="Undo").click()
    said(page, "Taken back.")
    assert [state(app, job) for job in jobs].count(JobState.PAUSED) == 0
    page.get_by_role("button", name="Select all 5").click()
    page.get_by_role("button", name="Cancel …", exact=True).click()
    page.wait_for_selector("#ask-title:text-is('Cancel 5 jobs?')")
    page.locator("#ask-yes").click()
    said(page, "5 changed.")
    assert {state(app, job) for job in jobs} == {JobState.CANCELLED}


def test_above_a_thousand_the_number_is_typed(app: Windlass, page: Page) -> None:
    app.enqueue_jobs_sync([NewJob(task="hello") for _ in range(1001)])
    go(page, "/jobs?task=hello")
    page.get_by_role("button", name="Select all 1,001").click()
    page.get_by_role("button", name="Delete …", exact=True).click()
    page.get_by_label("Type 1001 to confirm").fill("1000")
    page.locator("#ask-yes").click()
    page.wait_for_selector("#ask-problem:text-is('That is not 1001.')")
    page.get_by_label("Type 1001 to confirm").fill("1001")
    page.locator("#ask-yes").click()
    said(page, "1,001 changed.")
    page.wait_for_selector("text=No job matches")


def test_the_list_stands_still_while_rows_are_selected(app: Windlass, page: Page) -> None:
    first = app.enqueue_sync("hello", delay="1h").id
    go(page, "/jobs?task=hello")
    page.get_by_label(f"Select job {first}").check()
    second = app.enqueue_sync("hello", delay="1h").id
    page.wait_for_selector("#live[data-is=held]")
    assert page.locator(f"#job-{second}").count() == 0
    page.keyboard.press("Escape")
    page.wait_for_selector(f"#job-{second}")


def test_lanes_tasks_recurring_jobs_breakers_and_letters_are_acted_on(app: Windlass, page: Page) -> None:
    with working(app), pytest.raises(Exception, match="broken"):
        app.wait_sync(app.enqueue_sync("fail"), timeout=30)
    app.breakers.force_open_sync("partner")
    go(page, "/lanes")
    page.locator("tr:has-text('default')").get_by_role("button", name="Pause").click()
    said(page, "Nothing more of this lane is started.")
    assert [lane.name for lane in app.lanes.list_sync() if lane.paused_at] == ["default"]
    go(page, "/tasks")
    page.locator("tr:has(th:has-text('hello'))").get_by_role("button", name="Pause").click()
    said(page, "No job of this task is started.")
    go(page, "/recurring")
    page.get_by_role("button", name="Pause").click()
    said(page, "Paused.")
    assert [job.state for job in app.list_sync().jobs if job.name == "hourly"] == [JobState.PAUSED]
    go(page, "/breakers")
    page.get_by_role("button", name="Reset").click()
    said(page, "It is closed.")
    go(page, "/dead")
    page.get_by_role("button", name="Edit …").click()
    page.get_by_label("Payload (JSON)").fill("{}")
    page.locator("#ask-yes").click()
    said(page, "A requeue brings it back with this payload.")
    page.get_by_role("button", name="Try a few …").click()
    page.locator("#ask-yes").click()
    said(page, "The first ones run.")
    [canary] = app.canaries.list_sync()
    page.get_by_role("button", name="Call off").click()
    said(page, "The rest stays where it is.")
    assert app.canaries.get_sync(canary.id).state == "cancelled"
    app.bury_sync(canary.runs[0].job_id, "broken again")
    page.locator("section:has(#groups-title)").get_by_role("button", name="Acknowledge all …").click()
    page.get_by_label("Note (optional)").fill("known")
    page.keyboard.press("Enter")
    said(page, "Acknowledged.")
    page.wait_for_selector("text=Nothing is open.")
    go(page, "/audit")
    for action in ("pause", "acknowledge", "reset"):
        assert page.locator(f"td:has-text('{action}')").count() >= 1, action


def test_pages_and_rows_are_reached_by_keys(app: Windlass, page: Page) -> None:
    job = app.enqueue_sync("hello", delay="1h").id
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url(re.compile(r"/jobs$"))
    page.wait_for_selector(f"#job-{job}")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.wait_for_selector("#bulk-chosen:text-is('1 selected')")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    go(page, "/jobs")
    page.keyboard.press("/")
    page.keyboard.type("hello")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"search=hello"))
    page.keyboard.press("?")
    page.wait_for_selector("#keys dt:has-text('g j') + dd:text-is('Jobs')")
