"""Pages that are watched: what the browser complains about, what leaves the machine, and how they come out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, ViewportSize

WIDE: ViewportSize = {"width": 1360, "height": 820}
NARROW: ViewportSize = {"width": 320, "height": 700}
PATIENCE_S = 30.0
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
WATCH = """
window.seen = {shift: 0, violations: []};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.seen.shift += entry.value;
}).observe({type: "layout-shift", buffered: true});
document.addEventListener("securitypolicyviolation", (event) => {
  window.seen.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
LOOK = """() => {
  const loaded = performance.getEntries().filter((entry) => entry.entryType === "navigation" || entry.entryType === "resource");
  return {
    ...window.seen,
    width: document.documentElement.scrollWidth,
    room: innerWidth,
    bytes: loaded.filter((entry) => entry.initiatorType !== "fetch").reduce((sum, entry) => sum + entry.decodedBodySize, 0),
    title: document.title,
    language: document.documentElement.lang,
    headings: document.querySelectorAll("h1").length,
    links: [...document.querySelectorAll("a[href]")].map((link) => new URL(link.getAttribute("href"), location.href).href),
    twice: [...document.querySelectorAll("[id]")].map((one) => one.id).filter((id, place, all) => all.indexOf(id) !== place),
  };
}"""


def until(page: Page, is_true: Callable[[], bool]) -> None:
    """Wait for something that no selector can wait for, and let the page go on meanwhile."""
    give_up = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < give_up, "it did not come true"
        page.wait_for_timeout(20)


class Watched:
    """A page whose complaints and requests are kept."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.page: Page = context.new_page()
        self._problems: list[str] = []
        self._origin = origin
        self.page.on("console", lambda message: self._complain(message.type, message.text))
        self.page.on("pageerror", lambda error: self._problems.append(str(error)))
        self.page.on("request", lambda request: self._check(request.url))

    def _complain(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self._problems.append(f"console: {text}")

    def _check(self, url: str) -> None:
        if not url.startswith((self._origin, "data:")):
            self._problems.append(f"leaves the machine: {url}")

    def take(self) -> list[str]:
        """Return the complaints since the last call."""
        taken, self._problems = self._problems, []
        return taken

    def load(self, path: str, status: int = 200) -> dict[str, Any]:
        """Open a page, let it settle, and return what it looks like."""
        answer = self.page.goto(self._origin + path, wait_until="load")
        assert answer is not None
        if answer.status != status:
            self._problems.append(f"answered {answer.status}")
        if self.page.locator("#live").count():
            self.page.wait_for_selector("#live[data-is=on]")
        # What a script adds, and the first refresh, come within this time; nothing waits for them.
        self.page.wait_for_timeout(300)
        seen: dict[str, Any] = self.page.evaluate(LOOK)
        return seen
