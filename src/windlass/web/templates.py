"""Pages from templates; everything put into one is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from windlass.web.mount import put_below


@cache
def _environment() -> Environment:
    made = Environment(loader=PackageLoader("windlass.web"), autoescape=True, undefined=StrictUndefined)
    made.globals["name_in_path"] = name_in_path
    return made


def name_in_path(name: str) -> str:
    """Write a name as one segment of a path; templates call it too."""
    return quote(name, safe="")


def page(name: str, status: int = 200, *, base: str, **values: Any) -> HTMLResponse:
    """Fill a template in; its links lead below `base`, where the server is mounted."""
    return HTMLResponse(put_below(base, _environment().get_template(name).render(**values, base=base)), status)


def fragment(name: str, **values: Any) -> Markup:
    """Fill in a template that is put into another one."""
    return Markup(_environment().get_template(name).render(**values))  # noqa: S704 - what the template escaped


def error_page(status: int, text: str, request_id: str, *, base: str) -> bytes:
    """Write what a browser shows for a refusal."""
    filled = _environment().get_template("error.html").render(status=status, text=text, request_id=request_id)
    return put_below(base, filled).encode(errors="replace")
