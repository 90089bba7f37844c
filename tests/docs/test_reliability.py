"""The tests that docs/reliability.md names are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def test_promises_have_tests() -> None:
    assert len(NAMED) >= 15


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_that_is_named_is_there(file: str, test: str) -> None:
    assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
