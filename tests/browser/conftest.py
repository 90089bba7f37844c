"""A real browser that has logged in, and complains about nothing."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.browser.scene import ADMIN_TOKEN, Scene, make_scene
from tests.browser.watching import WATCH, WIDE
from tests.web.serving import listening
from windlass import Windlass

TOKEN = ADMIN_TOKEN
CHROMIUM = shutil.which("chromium")
try:
    from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
except ModuleNotFoundError:
    CHROMIUM = None

if CHROMIUM is None:
    print("\nTHE BROWSER TESTS DO NOT RUN: they need Debian's chromium and the package playwright\n", file=sys.__stderr__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder where there is no browser."""
    if CHROMIUM is None:
        skip = pytest.mark.skip(reason="NOT RUN: the browser tests need Debian's chromium and playwright")
        for item in items:
            if "tests/browser/" in item.nodeid:
                item.add_marker(skip)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root in a container there is no sandbox to have.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def provoked() -> list[str]:
    """Give a list for parts of the complaints that a test causes on purpose; they may come late, so they are told before."""
    return []


@pytest.fixture
def page(app: Windlass, browser: Browser, provoked: list[str]) -> Iterator[Page]:
    """Give a page that has logged in, and fail the test if the browser complains about anything."""
    complaints: list[str] = []
    with listening(app) as port:
        page = browser.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(re.compile(r":\d+/$"))
        yield page
        page.close()
    assert [one for one in complaints if not any(part in one for part in provoked)] == []


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Give a queue in which every page has something to show."""
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def origin(scene: Scene) -> Iterator[str]:
    """Serve the scene."""
    with listening(scene.app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def context(browser: Browser, origin: str) -> Iterator[BrowserContext]:
    """Give a browser that has logged in to the scene, and watches its pages."""
    with browser.new_context(viewport=WIDE) as context:
        context.set_default_timeout(20_000)
        context.add_init_script(WATCH)
        assert context.request.post(f"{origin}/login", form={"token": TOKEN}).ok
        yield context
