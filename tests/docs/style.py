"""Looks for phrases that the pages do without. `python3 dev.py check` runs it beside codespell."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from tests.docs.blocks import ROOT, pages

BANNED = {
    r"simply|easily|obviously|of course|basically|trivial(?:ly)?": "what is easy for one is not for another: leave it out",
    r"leverag(?:e|es|ing)|utili[sz](?:e|es|ing)": "use",
    r"in order to": "to",
    r"please note|note that|it should be noted": "say it",
    r"robust|seamless(?:ly)?|powerful|blazing|cutting-edge|enterprise-grade": "say what it does, or give a number",
    r"whitelist|blacklist|master/slave": "allow list, deny list, primary and standby",
    r"click here|see here": "name what is behind the link",
    r"TODO|TBD|FIXME|lorem ipsum": "finish it, or leave it out",
    r"SPEC §|seed 00\d": "a page refers to nothing outside the repository",
}
"""Phrases, and what to do in their place."""
_QUOTED = re.compile(r"`[^`]*`|^```.*?^```$", re.MULTILINE | re.DOTALL)
_FOUND = {
    re.compile(rf"\b(?:{phrases})(?!\w)", 0 if phrases.isupper() else re.IGNORECASE): advice for phrases, advice in BANNED.items()
}
_WRITTEN = "This page is written from the code"


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """List lines with a phrase, the phrase, and what to do in its place; code is left alone."""
    prose = _QUOTED.sub(lambda quoted: re.sub(r"[^\n]", " ", quoted[0]), text)
    for pattern, advice in _FOUND.items():
        for each in pattern.finditer(prose):
            yield prose.count("\n", 0, each.start()) + 1, each[0], advice


def main() -> int:
    """Print each place, as compilers do."""
    wrong = 0
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        if _WRITTEN in text:
            continue
        for line, phrase, advice in sorted(found(text)):
            wrong += 1
            print(f"{page}:{line}: {phrase!r}: {advice}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
