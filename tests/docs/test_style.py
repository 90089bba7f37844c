"""The check of words finds what it is for, and leaves code alone."""

from __future__ import annotations

from tests.docs.style import found


def test_a_banned_phrase_is_found_with_its_line_and_a_remedy() -> None:
    assert list(found("# Good\n\nYou can simply\nuse it In Order To win.\n")) == [
        (3, "simply", "what is easy for one is not for another: leave it out"),
        (4, "In Order To", "to"),
    ]


def test_code_is_left_alone() -> None:
    assert list(found("`simply` and\n```sh\nwindlass simply\n```\nrobustness is a word of its own\n")) == []
