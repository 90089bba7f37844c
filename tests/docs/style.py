"""Looks for phrases that pages, docstrings and comments do without. `python3 dev.py check` runs it beside codespell."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

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
}
"""Phrases that pages do without, and what to do in their place."""
PLAIN = {
    r"nobody|anybody|somebody|everybody": "name who it is: no worker, a caller, another process, all users",
    r"whoever|whomever": "name who it is: the caller, the worker that …",
    r"hears?|heard|hearing": "is called with, is notified, receives, reads",
    r"wish(?:es|ed)?": "asks for, request, value",
    r"(?:become|becomes|became) of": "the outcome of, the state of, the end of",
    r"word of|\w+'s word": "a report of, the value of, the name in",
    r"tells?|told|telling": "return, show, notify, report",
    r"speaks?|spoke": "use, send, be about",
    r"goodbye": "report its stop, end in order",
    r"strangers?": "another process, another transaction, a client without credentials",
    r"fares?|fared": "the statistics of",
    r"the seeds?|seed 00\d|SPEC §": "the system's name in docs/systems; refer to nothing outside the repository",
}
"""Metaphors that make a reader stop, and better words; pages, docstrings and comments do without."""
CODE = {
    r"says?|said|saying": "return, write, list, show, name",
}
"""The same in docstrings and comments only: a page may say something to its reader."""
ALLOWED = {
    ("src/windlass/store/sql/*/migrations/*.sql", r".*"): "a released migration is never edited: its checksum is stored",
    ("CODE_OF_CONDUCT.md", "(?i:nobody|somebody|whoever|tell)"): "it is about people, any of them",
}
"""Where a phrase stays, and why."""
COMMENT_MARKS = {".py": re.compile("#"), ".sql": re.compile("--"), ".js": re.compile(r"(?:^|\s)//\s")}
"""The kinds of files that are read, and what begins their comments."""
_QUOTED = re.compile(r"`[^`]*`|^```.*?^```$", re.MULTILINE | re.DOTALL)
_WRITTEN = "This page is written from the code"


def _compiled(*tables: dict[str, str]) -> dict[re.Pattern[str], str]:
    return {
        re.compile(rf"(?<![\w-])(?:{phrases})(?!\w)", 0 if phrases.isupper() else re.IGNORECASE): advice
        for table in tables
        for phrases, advice in table.items()
    }


_IN_PAGES = _compiled(BANNED, PLAIN)
_IN_RECORDS = _compiled(PLAIN)
_IN_CODE = _compiled(PLAIN, CODE)


def found(text: str, phrases: dict[re.Pattern[str], str] = _IN_PAGES) -> Iterator[tuple[int, str, str]]:
    """List lines with a phrase, the phrase, and what to do in its place; code is left alone."""
    prose = _QUOTED.sub(lambda quoted: re.sub(r"[^\n]", " ", quoted[0]), text)
    for pattern, advice in phrases.items():
        for each in pattern.finditer(prose):
            yield prose.count("\n", 0, each.start()) + 1, each[0], advice


def found_in_code(source: str, suffix: str = ".py") -> Iterator[tuple[int, str, str]]:
    """List what `found` does for the docstrings and comments of a file; its name ends with `suffix`."""
    # Most files have no such word at all, and parsing takes a hundred times as long.
    if any(pattern.search(source) for pattern in _IN_CODE):
        for start, text in _prose_of(source) if suffix == ".py" else _comments(source, COMMENT_MARKS[suffix]):
            for line, phrase, advice in found(text, _IN_CODE):
                yield start + line - 1, phrase, advice


def _prose_of(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        # Attributes have docstrings too: a text that is a statement of its own.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _comments(source: str, mark: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        comment = mark.search(line)
        if comment:
            yield number, line[comment.end() :]


def _all_found() -> Iterator[tuple[str, int, str, str]]:
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        if _WRITTEN not in text:
            yield from ((page, *each) for each in found(text))
    for path in (ROOT / "docs" / "decisions").glob("*.md"):
        yield from ((_name(path), *each) for each in found(path.read_text(encoding="utf-8"), _IN_RECORDS))
    for path in (ROOT / "src" / "windlass").rglob("*"):
        if path.suffix in COMMENT_MARKS:
            code = found_in_code(path.read_text(encoding="utf-8"), path.suffix)
            yield from ((_name(path), *each) for each in code)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_allowed(name: str, phrase: str) -> bool:
    """Whether a phrase may stay in this file."""
    return any(Path(name).match(files) and re.fullmatch(phrases, phrase) for files, phrases in ALLOWED)


def main() -> int:
    """Print each place, as compilers do."""
    wrong = 0
    for name, line, phrase, advice in sorted(_all_found()):
        if not is_allowed(name, phrase):
            wrong += 1
            print(f"{name}:{line}: {phrase!r}: {advice}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
