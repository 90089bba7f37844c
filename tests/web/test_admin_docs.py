"""The examples of the admin API's page, sent as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.serving import Served

PAGE = (Path(__file__).parents[2] / "docs" / "admin-api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```\n\n```json (\d+)\n(.*?)```", PAGE, re.DOTALL)
ANYTHING = "…"


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
@pytest.mark.usefixtures("crawled")
async def test_every_example_is_answered_as_shown(web: Served) -> None:
    assert len(EXAMPLES) == PAGE.count("```http")
    for method, path, body, status, expected in EXAMPLES:
        sent = {"content": body, "headers": {"content-type": "application/json"}} if body else {}
        answer = await web.ask(method, path, **sent)
        assert answer.status_code == int(status), (method, path, answer.text)
        assert fits(answer.json(), json.loads(expected)), (method, path, answer.text)


def fits(found: Any, shown: Any) -> bool:
    if isinstance(shown, dict):
        return all(name in found and fits(found[name], value) for name, value in shown.items())
    if isinstance(shown, list):
        return len(found) == len(shown) and all(map(fits, found, shown))
    return shown == ANYTHING or bool(found == shown)
