"""The code blocks of the pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LANGUAGES = frozenset({"python", "sh", "http"})
"""What a reader would run or send."""
FRAGMENT = "fragment"
"""The mark of a block that is a piece of something larger and cannot run by itself."""
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block: its language, the word behind it, its text."""

    language: str
    mark: str
    text: str


def pages() -> list[str]:
    """Name every page that people read; decision records show what was, not what to type."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    names = {path.relative_to(ROOT).as_posix() for path in found}
    return sorted(name for name in names if not name.startswith("docs/decisions/"))


def blocks(page: str, language: str | None = None) -> list[Block]:
    """Read the blocks of a page, all or those in one language."""
    found = [Block(*groups) for groups in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))]
    return [block for block in found if language in {None, block.language}]


def lines(page: str) -> list[str]:
    """Read what a page asks to type, line by line, without comments."""
    typed = [line.partition("  #")[0].rstrip() for block in blocks(page, "sh") for line in block.text.splitlines()]
    return [line for line in typed if line]
