"""The dashboard and the HTTP API below a path of a Django project, for users that Django has logged in."""

from __future__ import annotations

import hmac
import os
import queue
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

from django.conf import global_settings, settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseRedirect, StreamingHttpResponse
from django.http.request import split_domain_port
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.crypto import salted_hmac
from django.views.decorators.csrf import csrf_exempt

from windlass.core.access import Principal, Role
from windlass.core.job import MAX_NAME
from windlass.django.backends import loaded_app
from windlass.django.bridge import Bridge, BridgedAnswer

PERMISSION = "windlass.operate"
_STREAM_S = 1.0
"""How long a stream of events may hold a thread of a WSGI server; the page asks again."""
_EVENTS = "/api/v1/events"
_lock = threading.Lock()
_bridges: dict[tuple[int, str | None], Bridge] = {}


def role_of(user: Any) -> Role | None:
    """Return what a user may do: a superuser everything, with the permission operate, as staff look."""
    if not user.is_active:
        return None
    if user.is_superuser:
        return Role.ADMIN
    if user.has_perm(PERMISSION):
        return Role.OPERATOR
    return Role.VIEWER if user.is_staff else None


# The server asks for a token of its own with every change.
@csrf_exempt
def dashboard(request: HttpRequest, path: str = "", backend: str | None = None) -> Any:
    """Answer anything below the path that it is mounted at."""
    # First of all: once a form was read, Django no longer has the body.
    body = request.body
    scope = _scope(request, f"/{path}")
    # A program brings a token of Windlass, which the server looks at.
    if "HTTP_AUTHORIZATION" not in request.META:
        refusal = _let_in(request, scope)
        if refusal is not None:
            return refusal
    answer = _bridge(backend).ask(scope, body)
    return _response(request, answer, is_stream=scope["path"].endswith(_EVENTS))


def _let_in(request: HttpRequest, scope: dict[str, Any]) -> Any:
    """Put the user into the scope; returns the answer for one who may not look."""
    user: Any = request.user
    if not user.is_authenticated:
        return redirect_to_login(request.get_full_path(), _login_url())
    role = role_of(user)
    if role is None:
        return HttpResponseForbidden(f"The queue is for staff, and for users with the permission {PERMISSION}.")
    csrf = _csrf_of(request)
    page = scope["path"].removeprefix(scope["root_path"])
    if page == "/logout" and request.method == "POST" and hmac.compare_digest(csrf, str(request.POST.get("csrf", ""))):
        logout(request)
        return HttpResponseRedirect(resolve_url(settings.LOGOUT_REDIRECT_URL or _login_url()))
    scope["windlass.principal"] = Principal(f"django:{user.get_username()}"[:MAX_NAME], role, csrf=csrf)
    return None


def _login_url() -> str:
    """Return where people log in: at the admin where a project has named no page, and has none at Django's default."""
    if settings.LOGIN_URL == global_settings.LOGIN_URL:
        try:
            resolve(settings.LOGIN_URL)
        except Resolver404:
            with suppress(NoReverseMatch):
                return str(reverse("admin:login"))
    return str(settings.LOGIN_URL)


def _csrf_of(request: HttpRequest) -> str:
    """Make the token that changes must bring along; it ends with the session."""
    key = f"{request.user.pk} {request.session.session_key or ''}"
    return str(salted_hmac("windlass.django.dashboard", key, algorithm="sha256").hexdigest())


def _scope(request: HttpRequest, path: str) -> dict[str, Any]:
    """Describe a request as ASGI does."""
    # What the project's URLs, and a server's own prefix, put before the path.
    root = request.path.removesuffix(quote(path)).removesuffix(path).rstrip("/")
    names = {"HTTP_CONNECTION", "HTTP_HOST", "HTTP_TRANSFER_ENCODING"}
    # The name is the one that Django goes by, after a look at ALLOWED_HOSTS; as its own address, the server takes it too.
    host = request.get_host()
    own_name, _ = split_domain_port(host)
    headers = [(b"host", host.encode("latin-1"))]
    headers += [
        (name.removeprefix("HTTP_").lower().replace("_", "-").encode("latin-1"), str(value).encode("latin-1", "replace"))
        for name, value in request.META.items()
        if (name.startswith("HTTP_") and name not in names) or (name in {"CONTENT_TYPE", "CONTENT_LENGTH"} and value)
    ]
    full = f"{root}{path}"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": full,
        "raw_path": quote(full).encode(),
        "root_path": root,
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": headers,
        "client": (request.META.get("REMOTE_ADDR") or "unknown", 0),
        "server": (own_name.strip("[]"), None),
        "extensions": {},
    }


def _bridge(backend: str | None) -> Bridge:
    """Return the server of this process; the child of a fork has one of its own."""
    key = os.getpid(), backend
    with _lock:
        if key not in _bridges:
            # Loaded by the first request: a project starts as fast as without.
            from windlass.web.server import build_server  # noqa: PLC0415

            app = loaded_app(backend)
            server = build_server(app)

            @asynccontextmanager
            async def running() -> AsyncIterator[None]:
                async with app, server.running():
                    yield

            _bridges[key] = Bridge(server, running)
        return _bridges[key]


def close() -> None:
    """Close the database; for tests, whose database is dropped at their end."""
    with _lock:
        for bridge in _bridges.values():
            bridge.close()
        _bridges.clear()


def _response(request: HttpRequest, answer: BridgedAnswer, *, is_stream: bool) -> Any:
    start = answer.next()
    first = answer.next()
    response: Any
    if not first.get("more_body"):
        response = HttpResponse(first.get("body", b""), status=start["status"])
    elif isinstance(request, ASGIRequest):
        response = StreamingHttpResponse(_after(first["body"], answer), status=start["status"])
    else:
        response = StreamingHttpResponse(_parts(first["body"], answer, is_stream=is_stream), status=start["status"])
    # Django has set its own guess.
    del response.headers["Content-Type"]
    for name, value in start["headers"]:
        # Sessions are Django's; the server would only take back a cookie that it never gave.
        if name != b"set-cookie":
            response.headers[name.decode("latin-1")] = value.decode("latin-1")
    return response


async def _after(first: bytes, answer: BridgedAnswer) -> AsyncIterator[bytes]:
    yield first
    async for part in answer.parts_async():
        yield part


def _parts(first: bytes, answer: BridgedAnswer, *, is_stream: bool) -> Iterator[bytes]:
    ends_at = time.monotonic() + _STREAM_S if is_stream else None
    try:
        yield first
        if ends_at is None:
            yield from answer.parts()
            return
        while (left := ends_at - time.monotonic()) > 0 and (part := answer.part(left)) is not None:
            yield part
    except queue.Empty:
        return
    finally:
        answer.close()
