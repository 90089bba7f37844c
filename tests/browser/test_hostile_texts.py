"""Hostile texts in every field that is shown: they come out as text, and nothing in them runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.browser.hostile import TEXTS as EVERY_TEXT
from tests.browser.pages import addresses
from tests.browser.scene import Scene, make_scene
from tests.browser.watching import Watched
from windlass.core.one_line import one_line

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Dialog, Page

USED = '"><x-hostile>'
"""How the text begins whose page is used."""
IS_LONG = bool(os.environ.get("WINDLASS_TEST_LONG"))
TEXTS = tuple(text for place, text in enumerate(EVERY_TEXT) if IS_LONG or place % 6 == 0 or text.startswith(USED))
SHOWN = (
    *("task", "lane", "subject", "correlation", "description", "key", "value", "metadata", "error", "log", "actor"),
    *("schedule", "worker", "reason", "breaker"),
)
"""The fields whose texts must all be found on the pages."""
NEWEST = {"worker": 150}
"""Of a field whose page has no second one, how many are on it."""
COMPARED = 60
"""How many characters of a text are looked for: pages cut long ones."""
MOST_PAGES = 8
"""How many pages of a list are read."""
TRAP = "window.ran = []; window.hacked = () => window.ran.push(new Error().stack);"
INSPECT = """(html) => {
  const page = html === null ? document : new DOMParser().parseFromString(html, "text/html");
  const odd = "x-hostile, .hostile, iframe, object, embed, base, marquee, frameset, plaintext, xmp, math";
  const own = /^\\/assets\\/[\\w./-]+$/;
  const scripts = [...page.querySelectorAll("script")].filter((one) => !own.test(one.getAttribute("src")));
  const holds = (one) => [...one.attributes].some((held) => /^on|^x-hostile/.test(held.name));
  const handlers = [...page.querySelectorAll("*")].filter(holds);
  const ways = [...page.querySelectorAll("[href], [src], [action]")].filter((one) => {
    const to = new URL(one.getAttribute("href") ?? one.getAttribute("src") ?? one.getAttribute("action"), location.origin);
    return to.origin !== location.origin;
  });
  return {
    text: page.documentElement.textContent,
    next: page.querySelector("a[rel=next]")?.getAttribute("href") ?? null,
    boards: page.querySelectorAll("#board").length,
    odd: [...page.querySelectorAll(odd), ...scripts, ...handlers, ...ways].map((one) => one.outerHTML.slice(0, 200)),
  };
}"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("hostile"), TEXTS)


def spellings(text: str) -> Iterator[str]:
    """Write a text as pages may: as it is, as JSON, on one line; a parser of HTML turns every line break into one kind."""
    for written in (text, json.dumps(text, ensure_ascii=False)[1:-1], one_line(text)):
        yield re.sub(r"\r\n?", "\n", written)[:COMPARED]


def missing(scene: Scene, seen: str) -> list[str]:
    """Name the texts that no page shows."""
    return [
        f"{name}: {text[:COMPARED]!r}"
        for name in SHOWN
        for text in scene.texts[name][-NEWEST.get(name, len(TEXTS)) :]
        if not any(written in seen for written in spellings(text))
    ]


def read(page: Page, path: str) -> dict[str, Any]:
    """Read a page as a browser would parse it, without opening it."""
    html = page.evaluate("async (path) => (await fetch(path, {headers: {accept: 'text/html'}})).text()", path)
    inspected: dict[str, Any] = page.evaluate(INSPECT, html)
    return inspected


def test_hostile_texts_are_shown_as_text(context: BrowserContext, scene: Scene, origin: str) -> None:
    assert len(set(EVERY_TEXT)) >= 200
    context.add_init_script(TRAP)
    watched = Watched(context, origin)
    found: list[str] = []
    seen: list[str] = []

    def refuse(dialog: Dialog) -> None:
        found.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def judge(path: str, inspected: dict[str, Any]) -> None:
        found.extend(f"{path}: {one}" for one in inspected["odd"])
        if inspected["boards"] != 1:
            found.append(f"{path}: has {inspected['boards']} boards")
        seen.append(inspected["text"])

    watched.page.on("dialog", refuse)
    for path in addresses(scene.subjects):
        loaded = watched.load(path)
        inspected = watched.page.evaluate(INSPECT, None)
        judge(path, inspected)
        found += [f"{path}: {one}" for one in (*watched.take(), *loaded["violations"], *watched.page.evaluate("window.ran"))]
        assert watched.page.locator("#live").is_visible(), path
        for _ in range(MOST_PAGES):
            if inspected["next"] is None:
                break
            inspected = read(watched.page, inspected["next"])
            judge(path, inspected)
    for job in scene.failed:
        judge(f"/jobs/{job.id}", read(watched.page, f"/jobs/{job.id}"))
    assert found == []
    assert missing(scene, "\n".join(seen)) == []


def test_a_page_full_of_them_can_be_used(context: BrowserContext, scene: Scene, origin: str) -> None:
    context.add_init_script(TRAP)
    watched = Watched(context, origin)
    page = watched.page
    job = next(one for one in scene.failed if one.task.startswith(USED))
    watched.load(f"/jobs/{job.id}")
    page.get_by_role("button", name="Clone", exact=True).click()
    page.wait_for_url(re.compile(rf"/jobs/(?!{job.id}$)\d+$"))
    page.wait_for_selector("html.scripted")
    page.get_by_role("button", name="Edit …", exact=True).click()
    assert "<x-hostile>" in page.get_by_label("Payload (JSON)").input_value()
    page.keyboard.press("Escape")
    watched.load("/jobs?" + urlencode({"task": job.task}))
    assert page.locator("#board").get_by_text(job.task).count() >= 2
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    assert page.evaluate("window.ran") == []
    assert watched.take() == []
