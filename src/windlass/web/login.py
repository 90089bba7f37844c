"""Logging in and out with a browser."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from windlass.core.access import Principal, Role
from windlass.core.audit import Actor
from windlass.store.nouns import Sessions
from windlass.web.credentials import ADMIN, COOKIE, SESSION_LASTS, Credentials, cookie_of, lasts_until
from windlass.web.errors import Refusal
from windlass.web.forms import form_of
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route
from windlass.web.templates import page

_LOCAL_PATH = re.compile(r"/(?![/\\])[A-Za-z0-9/_.~-]*", re.ASCII)
_SEE_OTHER = 303


class SessionOut(BaseModel):
    """The principal of a browser's session."""

    principal: str
    role: Role
    csrf: str | None
    """What a browser sends as X-CSRF-Token with every change; null for other credentials."""


async def show_login(
    request: Request,
    code: Annotated[str | None, Query()] = None,
    next: Annotated[str, Query()] = "",  # noqa: A002 - the name browsers show
) -> Response:
    """Show the login page, or log in with the code of a login link."""
    context = context_of(request)
    if code is None:
        return page("login.html", base=context.base, next=_local(next, context.base), problem=None)
    Credentials.check_rate(context.server.logins, context.address)
    if not context.server.credentials.use_code(code):
        context.server.logins.record(context.address)
        problem = "This link was used before or is too old. Start the server for another."
        return page("login.html", 403, base=context.base, next=_local("", context.base), problem=problem)
    # A page that leads on, and no redirect: after one, browsers may still count the visit as another site's and keep the cookie.
    return await _let_in(request, ADMIN, SESSION_LASTS, page("welcome.html", base=context.base))


async def log_in(request: Request) -> Response:
    """Log in with a token."""
    context = context_of(request)
    _check_origin(request)
    Credentials.check_rate(context.server.logins, context.address)
    form = form_of(await request.body())
    known = await context.server.credentials.find_bearer(form.get("token", "").strip().encode(errors="surrogateescape"))
    where = _local(form.get("next", ""), context.base)
    if known is None or not known.principal.may(Role.VIEWER):
        context.server.logins.record(context.address)
        context.server.notes.refused(
            context.principal.name, "POST /login", context.address, request_id=context.request_id, status=403, why="bad token"
        )
        return page("login.html", 403, base=context.base, next=where, problem="This token is not valid here.")
    return await _let_in(request, known.principal, lasts_until(known.expires_at), RedirectResponse(where, _SEE_OTHER))


def _check_origin(request: Request) -> None:
    """Refuse a form on another site: it would log its visitors in as another user."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Refusal(403, "origin: the login form must be this server's own")


def _local(path: str, base: str) -> str:
    """Lead on to a page of ours and nowhere else."""
    return path if path.startswith(f"{base}/") and _LOCAL_PATH.fullmatch(path) else f"{base}/"


async def _let_in(request: Request, principal: Principal, lasts: timedelta, response: Response) -> Response:
    context = context_of(request)
    cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    digest = context.server.credentials.session_digest(cookie.encode())
    assert principal.role is not None  # noqa: S101 - both callers have asked for one
    sessions = Sessions(context.app.acting(Actor(principal.name, context.request_id)))
    await sessions.open(digest, principal.name, principal.role, csrf=csrf, lasts=lasts)
    is_https = request.url.scheme == "https"
    age_s = int(lasts.total_seconds())
    response.set_cookie(COOKIE, cookie, max_age=age_s, path=f"{context.base}/", httponly=True, samesite="strict", secure=is_https)
    return response


async def log_out(request: Request) -> Response:
    """End the session."""
    context = context_of(request)
    cookie = cookie_of(dict(request.scope["headers"]))
    if cookie is not None:
        await Sessions(context.app).close(context.server.credentials.session_digest(cookie))
        context.server.credentials.forget(cookie)
    response = RedirectResponse(f"{context.base}/login", _SEE_OTHER)
    response.delete_cookie(COOKIE, path=f"{context.base}/", httponly=True, samesite="strict")
    return response


async def get_session(request: Request) -> SessionOut:
    """Return the caller, and a browser's CSRF token."""
    principal = context_of(request).principal
    return SessionOut(principal=principal.name, role=principal.role or Role.VIEWER, csrf=principal.csrf)


ROUTES = (
    Route("GET", "/login", PUBLIC, show_login, is_page=True),
    Route("POST", "/login", PUBLIC, log_in, is_page=True),
    Route("POST", "/logout", Role.VIEWER, log_out, is_page=True),
    Route("GET", "/api/v1/session", Role.VIEWER, get_session),
)
