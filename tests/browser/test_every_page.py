"""Every page there is, by the table of routes: light and dark, wide and narrow, it breaks none of the rules of all pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.pages import addresses
from tests.browser.scene import Scene, run_apart
from tests.browser.watching import NARROW, THEMES, WATCH, WIDE, Watched
from windlass.core.access import NewToken, Role

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

MOST_BYTES = 150_000
MOST_SHIFT = 0.1
ALIKE = 3
"""How many links are followed that differ only in a number."""


def judge(seen: dict[str, Any]) -> Iterator[str]:
    """Name the rules that a page breaks."""
    if seen["violations"]:
        yield f"breaks the policy: {seen['violations']}"
    if seen["width"] > seen["room"]:
        yield f"is {seen['width']} px wide where {seen['room']} px are"
    if seen["shift"] >= MOST_SHIFT:
        yield f"shifts by {seen['shift']:.3f} while it loads"
    if seen["bytes"] >= MOST_BYTES:
        yield f"weighs {seen['bytes']:,} bytes"
    if not re.fullmatch(r".+ · Windlass", seen["title"]) or seen["language"] != "en":
        yield f"has the title {seen['title']!r} in {seen['language']!r}"
    if seen["headings"] != 1:
        yield f"has {seen['headings']} h1"
    if seen["twice"]:
        yield f"has ids twice: {seen['twice'][:5]}"


def test_every_page_keeps_the_rules_of_all_pages(context: BrowserContext, scene: Scene, origin: str) -> None:
    found: list[str] = []
    links: set[str] = set()
    for size, themes in ((WIDE, THEMES), (NARROW, THEMES[::-1])):
        watched = Watched(context, origin)
        watched.page.set_viewport_size(size)
        for path in addresses(scene.subjects):
            watched.page.emulate_media(color_scheme=themes[0])
            seen = watched.load(path)
            watched.page.emulate_media(color_scheme=themes[1])
            found += [f"{path} {size['width']} px: {problem}" for problem in (*judge(seen), *watched.take())]
            links.update(seen["links"])
        watched.page.close()
    assert found == []
    assert dead_links(context, links, origin) == []


def dead_links(context: BrowserContext, links: set[str], origin: str) -> list[str]:
    """Follow the links to pages of ours; of those that differ only in numbers, a few."""
    alike: Counter[str] = Counter()
    found = []
    for link in sorted({link.partition("#")[0] for link in links if link.startswith(origin)}):
        kind = re.sub(r"\d+", "0", link)
        alike[kind] += 1
        if alike[kind] <= ALIKE:
            answer = context.request.get(link)
            if answer.status != 200:
                found.append(f"{answer.status} {link}")
    return found


@pytest.mark.parametrize(("path", "status"), [("/login", 200), ("/nothing/here", 404), ("/jobs/987654321", 404)])
def test_pages_without_a_tab_keep_them_too(context: BrowserContext, origin: str, path: str, status: int) -> None:
    for size in (WIDE, NARROW):
        watched = Watched(context, origin)
        watched.page.set_viewport_size(size)
        seen = watched.load(path, status)
        told = [one for one in watched.take() if f"status of {status}" not in one]
        assert [*judge(seen), *told] == []
        watched.page.close()


def test_a_page_of_another_role_is_refused_in_the_same_style(browser: Browser, scene: Scene, origin: str) -> None:
    async def mint() -> str:
        async with scene.app as app:
            return (await (await app.store()).tokens.mint(NewToken(name="eve", role=Role.VIEWER))).secret

    with browser.new_context(viewport=NARROW) as context:
        context.add_init_script(WATCH)
        assert context.request.post(f"{origin}/login", form={"token": run_apart(mint())}).ok
        watched = Watched(context, origin)
        seen = watched.load("/audit", 403)
        told = [one for one in watched.take() if "status of 403" not in one]
        assert [*judge(seen), *told] == []
        assert "may not see this" in watched.page.inner_text("h1")
