"""The page on the jobs API, executed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role

PAGE = Path(__file__).parents[2] / "docs" / "jobs-api.md"
_BLOCK = re.compile(r"```http\n(.*?)```", re.DOTALL)


def exchanges() -> list[list[str]]:
    return [part.splitlines() for block in _BLOCK.findall(PAGE.read_text()) for part in block.strip().split("\n\n")]


def check(shown: Any, expected: Any, line: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            check(shown[key], value, f"{line} at {key}")
    elif expected == "*":
        assert shown is not None, line
    else:
        assert shown == expected, line


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
@pytest.mark.usefixtures("crawled")
async def test_the_page_says_what_happens(web: Served) -> None:
    assert len(exchanges()) > 20
    for request, *rest in exchanges():
        method, path = request.split(" ")
        *body, answer = rest
        status, text = answer.removeprefix("→ ").split(" ", 1)
        options = {"content": body[0], "headers": {"content-type": "application/json"}} if body else {}
        got = await web.ask(method, path, Role.OPERATOR, **options)
        assert got.status_code == int(status), f"{request}: {got.text}"
        check(got.json(), json.loads(text), request)
