"""The check of phrases finds what it is for, and leaves code alone."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT
from tests.docs.style import ALLOWED, COMMENT_MARKS, found, found_in_code, is_allowed


def test_a_banned_phrase_is_found_with_its_line_and_a_remedy() -> None:
    assert list(found("# Good\n\nYou can simply\nuse it In Order To win.\n")) == [
        (3, "simply", "what is easy for one is not for another: leave it out"),
        (4, "In Order To", "to"),
    ]


def test_code_is_left_alone() -> None:
    assert list(found("`simply` and\n```sh\nwindlass simply\n```\nrobustness is another word\n")) == []


MODULE = '''"""Runs jobs."""

HEARD = "nobody"
LIMIT = 3
"""How long
nobody waits."""


def tell(told):
    """Return what it `told`."""
    return told  # whoever asks
'''


@pytest.mark.parametrize(
    ("suffix", "source", "expected"),
    [
        (".py", MODULE, [(6, "nobody"), (11, "whoever")]),
        (
            ".sql",
            "-- name: tell\n-- What nobody holds.\nselect 'whoever' from heard -- as the seed does\n",
            [(1, "tell"), (2, "nobody"), (3, "the seed")],
        ),
        (".js", "// nobody types\nconst told = 'https://nobody'; // whoever\n", [(1, "nobody"), (2, "whoever")]),
    ],
)
def test_docstrings_and_comments_are_read(suffix: str, source: str, expected: list[tuple[int, str]]) -> None:
    assert sorted((line, phrase) for line, phrase, _ in found_in_code(source, suffix)) == expected


@pytest.mark.parametrize(
    "phrase",
    [
        "Nobody", "whoever", "anybody", "hears", "heard of", "a wish", "what became of", "the word of", "a handler's word",
        "the seed", "seed 003", "SPEC §",
    ],
)  # fmt: skip
def test_a_metaphor_is_refused_in_pages_and_in_code(phrase: str) -> None:
    assert list(found(f"Here {phrase} is.\n"))
    assert list(found_in_code(f"# Here {phrase} is.\n"))
    assert list(found_in_code(f"-- Here {phrase} is.\n", ".sql"))


def test_what_is_allowed_is_there_and_needed() -> None:
    for files, phrases in ALLOWED:
        matched = [path for path in ROOT.glob(files) if path.is_file()]
        assert matched, files
        texts = [path.read_text(encoding="utf-8") for path in matched]
        seen = [
            phrase
            for path, text in zip(matched, texts, strict=True)
            for _, phrase, _ in (found_in_code(text, path.suffix) if path.suffix in COMMENT_MARKS else found(text))
        ]
        assert any(re.fullmatch(phrases, phrase) for phrase in seen), files
    assert is_allowed("src/windlass/store/sql/sqlite/migrations/0006_feeds.sql", "nobody")
    assert not is_allowed("src/windlass/app.py", "nobody")
