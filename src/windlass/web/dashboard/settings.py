"""The settings, the tokens of programs and the packs; for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from windlass.app import Windlass
from windlass.core.access import Role
from windlass.core.ids import MAX_JOB
from windlass.core.settings import SETTINGS, Number
from windlass.web.configuration import configuration_of
from windlass.web.dashboard.frame import draw, now
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route
from windlass.web.settings import read_settings

_TOKENS = 100
_PACKS = "windlass.packs."


def packs_of(app: Windlass) -> dict[str, list[str]]:
    """Return the packs whose tasks this process has, with the names of those tasks."""
    found: dict[str, list[str]] = {}
    for spec in app.registry:
        module = spec.function.__module__
        if module.startswith(_PACKS):
            found.setdefault(module.removeprefix(_PACKS).partition(".")[0], []).append(spec.name)
    return {pack: sorted(tasks) for pack, tasks in sorted(found.items())}


def bounds_of(name: str) -> str:
    """Describe what a setting takes."""
    rule = SETTINGS[name]
    return f"{rule.low} to {rule.high}" if isinstance(rule, Number) else ", ".join(rule.words)


async def show_settings(request: Request, after: Annotated[int, Query(ge=0, le=MAX_JOB)] = 0) -> Response:
    """Show every setting, the tokens and the packs."""
    at = await now(request)
    app = context_of(request).app
    tokens = await reader_of(request).tokens.list(after=after, limit=_TOKENS)
    return draw(
        request,
        "settings.html",
        at,
        here="/settings",
        title="Settings",
        live=list((await read_settings(request)).values()),
        bounds=bounds_of,
        configuration=configuration_of(app),
        tokens=tokens,
        next=tokens[-1].id if len(tokens) == _TOKENS else None,
        roles=[role.value for role in Role],
        packs=packs_of(app),
    )


ROUTES = (Route("GET", "/settings", Role.ADMIN, show_settings, is_page=True, is_costly=True),)
