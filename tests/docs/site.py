"""Builds the documentation as a site into .dev/site and follows every link of it. `python3 dev.py docs` runs it."""

from __future__ import annotations

import os
import posixpath
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".dev" / "site"
_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "video": "src", "object": "data"}
"""What a browser fetches by itself, unlike a link that somebody follows."""
_NOT_FETCHED = frozenset({"canonical", "edit", "next", "prev"})


class Page(NamedTuple):
    """What a page has and what it points to."""

    anchors: frozenset[str]
    links: tuple[str, ...]
    loaded: tuple[str, ...]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found and tag != "meta"}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in _LOADED and _LOADED[tag] in found and found.get("rel") not in _NOT_FETCHED:
            self.loaded.append(found[_LOADED[tag]])
        if "mermaid" in found.get("class", "").split():
            self.loaded.append("https://unpkg.com/ (a diagram that the theme would fetch a program for)")


def build(folder: Path = SITE) -> None:
    """Build the site; a warning is an error, and the exit code is that of MkDocs."""
    # It tells that the theme has a successor, on every build.
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    typed = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(typed, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the site was not built:\n{done.stdout}{done.stderr}")


def read(folder: Path = SITE) -> dict[str, Page]:
    """Read every page of a built site, by its place within it."""
    found = {}
    for path in sorted(folder.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        found[path.relative_to(folder).as_posix()] = Page(frozenset(reader.anchors), tuple(reader.links), tuple(reader.loaded))
    return found


def problems(folder: Path = SITE) -> Iterator[str]:
    """List links that lead nowhere, and what a browser would fetch from others."""
    pages = read(folder)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for place, page in pages.items():
        # The page for what is not there is shown at any depth, so its links begin with a slash.
        if place == "404.html":
            continue
        for target in page.loaded:
            if urlsplit(target).netloc:
                yield f"{place}: a browser would fetch {target}"
        for target in dict.fromkeys((*page.links, *page.loaded)):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = _resolve(files, place, unquote(parts.path))
            if found is None:
                yield f"{place}: {target} leads nowhere"
            elif parts.fragment and found in pages and unquote(parts.fragment) not in pages[found].anchors:
                yield f"{place}: {target} has no such place on its page"


def _resolve(files: set[str], place: str, target: str) -> str | None:
    """Find the file that a link of a page leads to."""
    if not target:
        return place
    found = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    candidates = (found, posixpath.normpath(posixpath.join(found, "index.html")))
    return next((each for each in candidates if each in files), None)


def main() -> int:
    """Build, check, and say where it is."""
    build()
    wrong = list(problems())
    for each in wrong:
        print(each, file=sys.stderr)
    if not wrong:
        print(f"the site is in {SITE.relative_to(ROOT)}: `python3 -m http.server --directory {SITE.relative_to(ROOT)}` shows it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
