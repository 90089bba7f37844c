"""Recurring jobs, workers, letters, breakers, items, settings, reference and theme in a browser, by mouse and by keyboard."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import TOKEN
from tests.browser.test_dashboard import go, said
from tests.browser.watching import until
from tests.remote.test_docs import working
from windlass import JobContext, JobState, Windlass
from windlass.core.access import NewToken, Role
from windlass.core.blocking import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}", admin_token=TOKEN)
    gate = threading.Event()

    @app.task
    def hello(name: str = "you") -> str:
        return f"hello {name}"

    @app.task(max_attempts=1)
    def fail(password: str = "hunter2") -> None:
        raise RuntimeError(f"broken {bool(password)}")

    @app.task
    def wait() -> None:
        assert gate.wait(60)

    @app.task
    def find(ctx: JobContext) -> None:
        ctx.items_sync([{"phone": str(number), "name": "<b>Ann</b>"} for number in range(3)])

    @app.task
    def crawl() -> None:
        """Stand for the pack of this name."""

    @app.task
    def fetch_feed() -> None:
        """Stand for the pack `feeds`."""

    app.gate = gate  # type: ignore[attr-defined]  # a test's own handle
    return app


def press(place: Locator, key: str = "Enter") -> None:
    """Use a button as somebody without a mouse does, once it is there to be seen."""
    place.wait_for()
    place.focus()
    place.press(key)


def recurring(app: Windlass, name: str) -> Any:
    return app.schedules.get_sync(name)


def test_a_recurring_job_is_made_with_the_mouse_and_its_errors_stand_at_their_fields(
    app: Windlass, page: Page, provoked: list[str]
) -> None:
    provoked.append("status of 400")
    go(page, "/recurring")
    page.click("#schedule-new")
    page.get_by_label("Task").fill("helo")
    page.get_by_label("Name").fill("greeting")
    page.get_by_label("by cron").check()
    page.get_by_label("Cron", exact=True).fill("61 * * * *")
    page.wait_for_selector("#fault-cron:not([hidden])")
    page.get_by_label("Cron", exact=True).fill("30 3 * * *")
    page.get_by_label("Time zone").fill("Europe/Helsinki")
    page.wait_for_selector("#ahead p:text-is('at 03:30 (Europe/Helsinki)')")
    assert page.locator("#ahead li:has-text(' 03:30:00 UTC+')").count() == 5
    page.get_by_label("Payload (JSON)").fill('{"name": ')
    page.click("#schedule-yes")
    page.wait_for_selector("#fault-payload:not([hidden])")
    page.get_by_label("Payload (JSON)").fill('{"name": "Ann"}')
    page.click("#schedule-yes")
    page.wait_for_selector("#fault-task:has-text('is not registered')")
    page.get_by_label("Task").fill("hello")
    page.get_by_label("When it could not run in time, it").select_option("skip")
    page.click("#schedule-yes")
    said(page, "Created.")
    job = recurring(app, "greeting")
    assert (str(job.recurrence.cadence), job.recurrence.timezone, job.recurrence.misfire) == (
        "30 3 * * *",
        "Europe/Helsinki",
        "skip",
    )
    assert (job.task, job.payload) == ("hello", {"name": "Ann"})
    page.wait_for_selector(f"#job-{job.id}:has-text('at 03:30 (Europe/Helsinki)')")


def test_a_recurring_job_is_edited_run_paused_and_resumed_by_keyboard(app: Windlass, page: Page) -> None:
    app.ensure_sync("tick", "hello", cadence="@every 1h")
    job = recurring(app, "tick")
    go(page, "/recurring")
    row = page.locator(f"#job-{job.id}")
    press(row.get_by_role("button", name="Edit …"))
    page.wait_for_selector("#schedule[open]")
    assert page.get_by_label("Every").input_value() == "1h"
    page.get_by_label("Every").fill("90m")
    page.wait_for_selector("#ahead p:text-is('every 1 hour 30 minutes')")
    page.get_by_label("Every").press("Enter")
    said(page, "Changed.")
    assert str(recurring(app, "tick").recurrence.cadence) == "@every 1h30m"
    press(row.get_by_role("button", name="Pause"), " ")
    said(page, "Paused.")
    assert recurring(app, "tick").state is JobState.PAUSED
    press(row.get_by_role("button", name="Resume"))
    said(page, "Resumed.")
    press(row.get_by_role("button", name="Run now"))
    said(page, "It is due now.")
    assert recurring(app, "tick").state is JobState.PENDING
    with working(app):
        page.wait_for_selector(f"#job-{job.id} .past li:has-text('completed')", state="attached")
    press(row.get_by_role("button", name="Edit …"))
    page.keyboard.press("Escape")
    page.wait_for_selector("#schedule[open]", state="detached")


def test_a_worker_is_told_to_claim_nothing_and_to_claim_again(
    app: Windlass, page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    go(page, "/workers")
    with working(app):
        running = app.enqueue_sync("wait").id
        page.wait_for_selector(f"#runs-{running}")
        page.get_by_role("button", name="Stop claiming").click()
        said(page, "It claims nothing more")
        page.wait_for_selector("text=claims nothing")
        [worker] = app.workers.list_sync()
        assert worker.paused_by == "admin"
        # With the heartbeat that tells it comes what the process takes.
        page.wait_for_selector("dd:has-text('MB')")
        until(page, lambda: "claims nothing more until" in caplog.text)
        waiting = app.enqueue_sync("hello").id
        app.gate.set()  # type: ignore[attr-defined]  # see the fixture
        page.wait_for_selector(f"#runs-{running}", state="detached")
        assert app.get_sync(waiting).state is JobState.PENDING
        go(page, f"/jobs/{waiting}")
        go(page, "/workers")
        press(page.get_by_role("button", name="Claim again"))
        said(page, "It claims jobs again.")
        app.wait_sync(waiting, timeout=30)


def test_letters_are_noted_and_tried_with_a_few_first_by_keyboard(app: Windlass, page: Page) -> None:
    with working(app), pytest.raises(Exception, match="broken"):
        app.wait_sync(app.enqueue_sync("fail"), timeout=30)
    [letter] = app.letters.list_sync().letters
    go(page, "/dead")
    press(page.get_by_role("button", name="Note …"))
    page.get_by_label("Note", exact=True).fill("ask <b>Ann</b>")
    page.keyboard.press("Enter")
    said(page, "Noted.")
    page.wait_for_selector(f"#letter-{letter.id}:has-text('ask <b>Ann</b>')")
    assert [one.text for one in app.letters.get_sync(letter.id).notes] == ["ask <b>Ann</b>"]
    page.locator(f"#payload-{letter.id} summary").press("Enter")
    page.wait_for_selector(f"#payload-{letter.id} pre:has-text('{{}}')")
    press(page.get_by_role("button", name="Acknowledge …"))
    page.get_by_label("Note (optional)").fill("known")
    page.keyboard.press("Enter")
    said(page, "Acknowledged.")
    assert app.letters.get_sync(letter.id).note == "known"
    page.get_by_role("link", name="acknowledged").click()
    page.wait_for_url(re.compile("acknowledged"))
    page.wait_for_selector("text=acknowledged by admin")
    press(page.get_by_role("button", name="Requeue"))
    said(page, "It runs again.")
    assert app.letters.get_sync(letter.id).closed_at is not None


def test_a_breaker_is_opened_for_a_while_and_reset_by_keyboard(app: Windlass, page: Page) -> None:
    app.breakers.force_open_sync("partner", "1h")
    app.breakers.reset_sync("partner")
    go(page, "/breakers")
    press(page.get_by_role("button", name="Force open …"))
    page.get_by_label("For how long").fill("10m")
    page.keyboard.press("Enter")
    said(page, "It is open.")
    opened = app.breakers.get_sync("partner")
    assert opened is not None
    assert opened.probe_at is not None
    assert opened.is_forced
    press(page.get_by_role("button", name="Reset"))
    said(page, "It is closed.")
    assert app.breakers.get_sync("partner").state == "closed"  # type: ignore[union-attr]


def test_items_are_opened_and_downloaded(app: Windlass, page: Page) -> None:
    with working(app):
        job = app.enqueue_sync("find").id
        app.wait_sync(job, timeout=30)
    go(page, "/items")
    page.get_by_role("link", name="find", exact=True).click()
    page.wait_for_selector("text=3 items of find")
    page.locator("summary").first.press("Enter")
    page.wait_for_selector("details[open] pre:has-text('<b>Ann</b>')")
    with page.expect_download() as given:
        page.get_by_role("link", name="CSV").click()
    assert "<b>Ann</b>" in Path(given.value.path()).read_text()
    page.get_by_label("Job").fill(str(job))
    page.keyboard.press("Enter")
    page.wait_for_selector("text=found first by")


def test_a_token_is_made_shown_once_and_revoked(app: Windlass, page: Page, provoked: list[str]) -> None:
    provoked.append("status of 400")
    go(page, "/settings")
    page.click("#token-new")
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Role").select_option("operator")
    page.get_by_label("Ends after").fill("soon")
    page.click("#mint-yes")
    page.wait_for_selector("#fault-expires_in:not([hidden])")
    page.get_by_label("Ends after").fill("12h")
    page.keyboard.press("Enter")
    page.wait_for_selector("#minted:not([hidden])")
    secret = page.locator("#minted-secret").inner_text()
    store = run(app.blocking_store())
    [token] = run(store.tokens.list())
    assert (token.name, token.role, token.is_live, token.expires_at is not None) == ("ci", Role.OPERATOR, True, True)
    press(page.locator("#mint-no"))
    page.wait_for_selector(f"#token-{token.id}")
    assert secret not in page.content()
    press(page.locator(f"#token-{token.id}").get_by_role("button", name="Revoke …"))
    press(page.locator("#ask-yes"))
    said(page, "Revoked.")
    assert not run(store.tokens.list())[0].is_live


def test_a_setting_is_set_and_unset(app: Windlass, page: Page) -> None:
    go(page, "/settings")
    row = page.locator("#live-BACKOFF_BASE_SEC")
    row.get_by_role("button", name="Set …").click()
    page.get_by_label("Value (1 to 3600)").fill("45")
    page.keyboard.press("Enter")
    said(page, "It holds from the next use on.")
    assert app.stored_settings.effective_sync()["BACKOFF_BASE_SEC"].value == 45
    press(row.get_by_role("button", name="Unset"))
    said(page, "the default counts again")
    assert app.stored_settings.effective_sync()["BACKOFF_BASE_SEC"].value == 30


def test_the_reference_is_searched_and_tried(app: Windlass, page: Page) -> None:
    go(page, "/reference")
    page.keyboard.press("/")
    page.keyboard.type("/api/v1/lanes")
    page.wait_for_selector("#create_job[hidden]", state="attached")
    page.locator("#list_lanes > summary").press("Enter")
    page.locator("#list_lanes").get_by_role("link", name="LanesOut").wait_for()
    page.locator("#list_lanes .try button").click()
    page.wait_for_selector("#list_lanes .answer .badge:has-text('200')")
    page.locator("#pause_lane > summary").click()
    page.locator("#pause_lane-name").fill("slow")
    page.locator("#pause_lane-force").fill("true")
    page.locator("#pause_lane-force").press("Enter")
    page.locator("#ask-no").click()
    assert [lane for lane in app.lanes.list_sync() if lane.paused_at] == []
    page.locator("#pause_lane .try button").click()
    press(page.locator("#ask-yes"))
    page.wait_for_selector("#pause_lane .answer .badge:has-text('200')")
    assert [lane.name for lane in app.lanes.list_sync() if lane.paused_at] == ["slow"]
    go(page, "/reference#schema-LanesOut")
    page.wait_for_selector("#schema-LanesOut[open] table")


def test_a_theme_is_chosen_kept_and_there_before_anything_is_drawn(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    light: Any = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Theme").select_option("dark")
    dark: Any = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    # As the parser leaves the head: whatever comes later would be seen as a flash.
    early = "window.early ??= document.documentElement.dataset.theme"
    page.add_init_script(f"document.addEventListener('readystatechange', () => {{ {early}; }})")
    go(page, "/workers")
    assert page.evaluate("[window.early, getComputedStyle(document.body).backgroundColor]") == ["dark", dark]
    assert page.get_by_label("Theme").input_value() == "dark"
    press(page.get_by_label("Theme"), "Home")
    page.wait_for_function("() => !document.documentElement.dataset.theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


@contextmanager
def as_role(app: Windlass, page: Page, browser: Browser, role: Role) -> Iterator[Page]:
    """Log somebody of a role in, beside the admin."""
    minted = run(run(app.blocking_store()).tokens.mint(NewToken(name=role.value, role=role)))
    other = browser.new_context().new_page()
    other.goto(re.sub(r"(:\d+)/.*", r"\1/login", page.url))
    other.get_by_label("Token").fill(minted.secret)
    other.get_by_role("button", name="Log in").click()
    other.wait_for_selector("html.scripted")
    yield other
    other.context.close()


def test_each_role_sees_what_it_may_do_and_nothing_more(app: Windlass, page: Page, browser: Browser) -> None:
    app.ensure_sync("tick", "hello", cadence="@every 1h")
    app.breakers.force_open_sync("partner")
    with working(app):
        with pytest.raises(Exception, match="broken"):
            app.wait_sync(app.enqueue_sync("fail"), timeout=30)
        buttons = {"/recurring": "Edit …", "/workers": "Stop claiming", "/dead": "Requeue all …", "/breakers": "Reset"}
        for role in (Role.VIEWER, Role.OPERATOR):
            with as_role(app, page, browser, role) as other:
                for path, button in buttons.items():
                    go(other, path)
                    shown = other.get_by_role("button", name=button).count()
                    assert shown == (1 if role is Role.OPERATOR else 0), (role, path)
                assert other.get_by_role("link", name="Settings").count() == 0
                go(other, "/reference")
                other.locator("#pause_lane > summary").click()
                drawn = ".try" if role is Role.OPERATOR else ":text('Trying it takes the role operator')"
                other.wait_for_selector(f"#pause_lane {drawn}")
                assert other.locator("#pause_lane .try").count() == (1 if role is Role.OPERATOR else 0)
                other.locator("#mint_token > summary").click()
                other.wait_for_selector("#mint_token:has-text('Trying it takes the role admin')")
        go(page, "/settings")
        assert page.get_by_role("button", name="New token …").count() == 1
