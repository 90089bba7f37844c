"""Photographs every page of a demo: `python3 dev.py screenshots [--out DIR] [--full]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.pages import addresses
from tests.web.server_process import TOKEN, running
from windlass import JobState, Windlass
from windlass.core.filter import JobFilter
from windlass.core.page import JobQuery

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

SIZES: tuple[ViewportSize, ...] = ({"width": 1360, "height": 820}, {"width": 390, "height": 844})
THEMES = ("light", "dark")
WITHIN_S = 90


def main() -> int:
    """Start a demo, wait until it shows everything, and take a picture of each page, theme and size."""
    parser = argparse.ArgumentParser(prog="dev.py screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(".dev/screenshots"), help="where the pictures go (%(default)s)")
    parser.add_argument("--full", action="store_true", help="the whole page, not only what fits the window")
    chosen = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("screenshots: there is no chromium here; install it, on Debian with `apt-get install chromium`, and try again")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - after the sentence above

    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--demo", command="up") as server:
        paths = addresses(subjects(Path(folder) / "windlass-demo.db"))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            taken = photograph(browser, f"http://127.0.0.1:{server.port}", paths, chosen.out, is_full=chosen.full)
    print(f"screenshots: {taken} pictures of {len(paths)} pages in {chosen.out}")
    return 0


def subjects(database: Path) -> dict[str, str]:
    """Wait until the demo has one of everything, and name it for the pages that show a single thing."""
    give_up = time.monotonic() + WITHIN_S
    with Windlass(f"sqlite:///{database}") as app:
        while time.monotonic() < give_up:
            failed = app.list_sync(JobQuery(filter=JobFilter(states=(JobState.FAILED,)), limit=1)).jobs
            tree = app.list_sync(JobQuery(filter=JobFilter(correlation_id="demo-3"))).jobs
            if failed and len(tree) > 4 and app.alerts.board_sync().open:
                return {
                    "alerts": "breaker",
                    "breakers": "demo-partner",
                    "correlations": "demo-3",
                    "dead": "1",
                    "items": "demo-report",
                    "jobs": str(failed[0].id),
                    "lanes": "fast",
                    "recurring": str(app.schedules.get_sync("demo-hourly").id),
                    "tasks": "demo-report",
                    "workers": app.workers.list_sync()[0].id,
                }
            time.sleep(0.5)
    sys.exit(f"screenshots: the demo did not show everything within {WITHIN_S} s; is this machine very busy?")


def photograph(browser: Browser, origin: str, paths: list[str], out: Path, *, is_full: bool) -> int:
    """Take the pictures, each named after its page, theme and width; returns how many."""
    taken = 0
    for size in SIZES:
        with browser.new_context(viewport=size) as context:
            assert context.request.post(f"{origin}/login", form={"token": TOKEN}).ok
            page = context.new_page()
            for path in paths:
                page.goto(origin + path)
                page.wait_for_selector("#live[data-is=on]")
                # Not by a function, which a page's policy does not let Playwright look at twice.
                page.locator("#board", has_text="Loading …").wait_for(state="detached")
                # Until what a script draws beside the text is drawn.
                page.wait_for_timeout(500)
                for theme in THEMES:
                    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]  # one of two words
                    name = f"{path.strip('/').replace('/', '-') or 'overview'}-{theme}-{size['width']}.png"
                    page.screenshot(path=out / name, full_page=is_full)
                    taken += 1
    return taken


if __name__ == "__main__":
    sys.exit(main())
