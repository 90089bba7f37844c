"""Pages from templates; everything put into one is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    return Environment(loader=PackageLoader("windlass.web"), autoescape=True, undefined=StrictUndefined)


def page(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Fill a template in."""
    return HTMLResponse(_environment().get_template(name).render(**values), status)
