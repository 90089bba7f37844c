"""The dashboard below a path of a FastAPI application: scripts, events and actions find their way."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import TOKEN
from tests.web.mounted import PREFIX, mounted
from windlass import Windlass


def test_a_mounted_dashboard_acts_and_follows(tmp_path: Path, browser: Browser) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'mounted.db'}", admin_token=TOKEN)
    app.task(name="greet")(lambda: None)
    app.migrate()
    complaints: list[str] = []
    with mounted(app) as address:
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}/jobs")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(re.compile(rf"{PREFIX}/jobs$"))
        expect(page.locator("#live")).to_have_text("live")
        job = app.enqueue_sync("greet")
        # An event tells the page that there is a job; its script has found the stream below the path.
        page.get_by_role("link", name=str(job.id), exact=True).click()
        page.wait_for_url(re.compile(rf"{PREFIX}/jobs/{job.id}$"))
        before = app.get_sync(job.id).priority
        page.get_by_role("button", name="Boost", exact=True).click()
        expect(page.locator("#toasts")).not_to_be_empty()
        assert app.get_sync(job.id).priority > before
        page.close()
    assert complaints == []
