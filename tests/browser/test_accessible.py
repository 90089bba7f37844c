"""Every page through axe-core, light and dark: no finding that is serious or critical."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from tests.browser.pages import addresses
from tests.browser.scene import Scene
from tests.browser.watching import NARROW, THEMES, Watched

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

IS_LONG = bool(os.environ.get("WINDLASS_TEST_LONG"))
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map((one) => ({
  rule: one.id, impact: one.impact, help: one.help, nodes: one.nodes.map((node) => node.html.slice(0, 160)),
}))"""
OPEN = """() => [...document.querySelectorAll("details")].forEach((one, place) => {
  if (place < 10) one.open = true;
  else one.remove();
})"""
"""Unfolds what is folded; the reference has hundreds, all alike, and all of them would keep axe busy for minutes."""


def findings(page: Page, themes: Sequence[Literal["light", "dark"]] = THEMES) -> Iterator[str]:
    """Name what axe calls serious or critical, in each theme."""
    page.evaluate(AXE)
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        found: list[dict[str, Any]] = page.evaluate(RUN)
        for one in found:
            if one["impact"] in {"serious", "critical"}:
                yield f"{theme}: {one['rule']} ({one['impact']}): {one['help']}: {one['nodes'][:3]}"


def test_axe_finds_nothing_serious_on_any_page(context: BrowserContext, scene: Scene, origin: str) -> None:
    watched = Watched(context, origin)
    found: list[str] = []
    for place, path in enumerate(addresses(scene.subjects)):
        watched.load(path)
        watched.page.evaluate(OPEN)
        # Every other page in dark: both share their markup, and all pages their colours.
        themes = THEMES if IS_LONG else (THEMES[place % 2],)
        found += [f"{path} {one}" for one in findings(watched.page, themes)]
    assert found == []


def test_axe_finds_nothing_serious_on_a_phone_in_a_question_and_on_pages_without_a_tab(
    context: BrowserContext, scene: Scene, origin: str
) -> None:
    watched = Watched(context, origin)
    page, found = watched.page, list[str]()
    page.set_viewport_size(NARROW)
    for path, status in (("/", 200), ("/jobs", 200), ("/login", 200), ("/nothing", 404), ("/jobs/987654321", 404)):
        watched.load(path, status)
        found += [f"{path} {one}" for one in findings(page)]
    watched.load(f"/jobs/{scene.failed[0].id}")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    found += [f"keys {one}" for one in findings(page)]
    assert found == []
