"""The reference is what the code says."""

from __future__ import annotations

import pytest

from tests.docs.reference import FOLDER, pages


@pytest.mark.parametrize("name", ["settings.md", "endpoints.md", "cli.md", "python.md"])
def test_the_reference_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `python3 dev.py docs`"
