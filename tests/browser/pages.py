"""The pages of the dashboard, by the table of routes: whoever adds one there has it tested and photographed."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from windlass.web.routes import ROUTES

_NO_TAB = ("/assets/", "/login")


def addresses(subjects: Mapping[str, str]) -> list[str]:
    """Return an address of every page; `subjects` has a value for a parameter, by the first part of the path."""
    pages = (route.path for route in ROUTES if route.is_page and route.method == "GET")
    return [_address(path, subjects) for path in pages if not path.startswith(_NO_TAB)]


def _address(path: str, subjects: Mapping[str, str]) -> str:
    noun, *rest = path.removeprefix("/").split("/")
    filled = [quote(subjects[noun], safe="") if part.startswith("{") else part for part in rest]
    return "/".join(["", noun, *filled])
