"""Hooks of MkDocs: the menu is docs/README.md, and what pages link to outside docs/ becomes part of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = "source"
"""Where the site keeps files of the repository that are not in docs/."""
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the menu from the page that lists all pages, so that a page is listed once."""
    config.nav = menu((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    return config


def menu(listed: str) -> list[dict[str, str | list[dict[str, str]]]]:
    """Read sections and their pages from the page that lists them."""
    _, *parts = _HEADING.split(listed)
    sections: list[dict[str, str | list[dict[str, str]]]] = [{"Home": "README.md"}]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        found = {
            _place("README.md", target): name for name, target, anchor in _LINK.findall(text) if not anchor and _is_page(target)
        }
        sections.append({heading: [{name[0].upper() + name[1:]: target} for target, name in found.items()]})
    return sections


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside docs/, and what those link to."""
    waiting = [file.src_uri for file in files.documentation_pages()]
    while waiting:
        uri = waiting.pop()
        for target in _targets(uri):
            place = _place(uri, target)
            if place.startswith(f"{OUTSIDE}/") and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(_on_disk(place))))
                if place.endswith(".md"):
                    waiting.append(place)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names them
    """Point links out of docs/ to where the site has the files, and drop the marks behind the language of code blocks."""
    uri = page.file.src_uri
    linked = _LINK.sub(lambda found: f"[{found[1]}]({_from(uri, found[2])}{found[3] or ''})", markdown)
    shown = _IMAGE.sub(lambda found: f"{found[1]}{_from(uri, found[2])})", linked)
    return _FENCE.sub(_fence, shown)


def _targets(uri: str) -> list[str]:
    text = _on_disk(uri).read_text(encoding="utf-8")
    return [target for _, target, _ in _LINK.findall(text)] + [target for _, target in _IMAGE.findall(text)]


def _is_page(target: str) -> bool:
    return target.endswith(".md") and "://" not in target


def _on_disk(uri: str) -> Path:
    """Find the file behind a page of the site."""
    return ROOT / uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else ROOT / "docs" / uri


def _place(uri: str, target: str) -> str:
    """Resolve a link of a page to a place within the site."""
    if "://" in target or target.startswith("mailto:"):
        return target
    folder = _on_disk(uri).parent.relative_to(ROOT).as_posix()
    found = posixpath.normpath(posixpath.join(folder, target))
    if (ROOT / found).is_dir():
        found = posixpath.join(found, "README.md")
    return found.removeprefix("docs/") if found.startswith("docs/") else f"{OUTSIDE}/{found}"


def _from(uri: str, target: str) -> str:
    """Write a link as MkDocs wants it: relative to the page."""
    place = _place(uri, target)
    return place if "://" in place or place.startswith("mailto:") else posixpath.relpath(place, posixpath.dirname(uri) or ".")


def _fence(found: re.Match[str]) -> str:
    language, mark = found.groups()
    return f'```{language} title="{mark}"' if "." in mark else f"```{language}"
