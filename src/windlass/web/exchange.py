"""One request and its answer: let in by the table of routes, read within its bounds, and answered whatever goes wrong."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, unquote_plus

from windlass.core.access import Principal
from windlass.core.current import current_request
from windlass.core.job import MAX_NAME
from windlass.errors import StoreBusy, shown
from windlass.web import forms
from windlass.web.connections import CONNECTION
from windlass.web.credentials import SCRAPER
from windlass.web.errors import INTERNAL, UNAVAILABLE, Refusal, refusal_of
from windlass.web.mount import mounted_path
from windlass.web.probes import PROBES
from windlass.web.read_queue import ReadPermit, read_took_too_long
from windlass.web.request_context import ANONYMOUS, KEY, PRINCIPAL, RequestContext
from windlass.web.route import Route
from windlass.web.router import RouteMatch
from windlass.web.signing import Target, check_body
from windlass.web.templates import error_page

if TYPE_CHECKING:
    from windlass.web.server import RoutedHandler, Server

log = logging.getLogger("windlass.web")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON = b"application/json"
_SAFE = frozenset({"GET", "HEAD"})
_AUDITED = frozenset({401, 403})
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # With no-referrer a browser calls the origin of our own forms `null`, and the login page refuses that.
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", _POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NO_STORE = (b"cache-control", b"no-store")
_HSTS = (b"strict-transport-security", b"max-age=31536000")
_CLOSE = (b"connection", b"close")
_ONCE = (
    *(b"host", b"authorization", b"cookie", b"content-type", b"content-length", b"x-internal-secret", b"x-worker-id"),
    *(b"x-signature", b"x-timestamp", b"x-nonce", b"x-content-sha256"),
)


class Exchange:
    """One request and its answer."""

    def __init__(self, server: Server, scope: Scope, send: Send) -> None:
        """Begin with the request alone."""
        self._server = server
        self._scope = scope
        self._send = send
        self._sent_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        self._base, self._raw_path = mounted_path(self._sent_path, scope.get("root_path", ""), server.public_base)
        pairs = scope["headers"]
        self._headers: dict[bytes, bytes] = dict(pairs)
        self._has_doubles = len(self._headers) != len(pairs)
        self._request_id = server.name_request(self._headers.get(b"x-request-id"))
        self._address = scope["client"][0] if scope.get("client") else "unknown"
        self._principal: Principal = ANONYMOUS
        self._is_started = False
        self._is_read = b"content-length" not in self._headers and b"transfer-encoding" not in self._headers
        self._status = 0
        self._held = 0
        """How much of a large body is in memory for this request."""
        self._read_permit: ReadPermit | None = None

    async def answer(self, receive: Receive) -> None:
        """Let the request in and answer it, or refuse it."""
        current_request.set(self._request_id)
        entry: RoutedHandler | None = None
        try:
            entry = await self._admit()
            body = await self._read(entry.route, receive)
            if body and not entry.route.is_callback:
                self._check_kind()
            if self._principal.is_signed:
                check_body(self._headers, body)
            self._check_form_csrf(body)
            await self._run(entry, body, receive)
        except Exception as error:  # noqa: BLE001 - the one place where errors become answers
            await self._refuse(entry, error)
        finally:
            self._server.held_bytes -= self._held
            self._end_turn()
        if log.isEnabledFor(logging.DEBUG) or self._status >= 400:  # noqa: PLR2004 - where refusals begin
            self._tell()

    async def _admit(self) -> RoutedHandler:
        """Find the row, the principal, and whether the one may the other. The order is part of the contract."""
        scope, headers = self._scope, self._headers
        if self._has_doubles:
            self._check_doubles()
        address_bytes = len(self._sent_path) + len(scope["query_string"])
        if address_bytes + sum(len(name) + len(value) for name, value in scope["headers"]) > self._server.limits.header_bytes:
            raise Refusal(431, f"headers: must not be larger than {self._server.limits.header_bytes} bytes")
        local = scope["server"][0] if scope.get("server") else None
        if self._raw_path not in PROBES and not self._server.hears(headers.get(b"host"), local):
            raise Refusal(421, "host: this server does not go by that name; see WINDLASS_ALLOWED_HOSTS")
        found = self._server.find(self._raw_path)
        entry = self._pick(found)
        if entry is None or entry.route.least is not None:
            await self._identify(entry)
        if found is None:
            where = "; GET /openapi.json lists every route" if self._path.startswith("/api/") else ""
            raise Refusal(404, f"there is nothing at {self._path}{where}")
        if entry is None:
            raise _no_method(scope["method"], found)
        is_scrape = entry.route.is_scraped and self._principal is SCRAPER
        if entry.route.least is not None and not self._principal.may(entry.route.least) and not is_scrape:
            role = self._principal.role or "no role"
            raise Refusal(403, f"{self._principal.name} ({role}) may not do this; it takes {entry.route.least}")
        self._check_csrf()
        if scope["query_string"] and not entry.route.is_callback:
            self._check_query(entry)
        scope["path_params"] = dict(found.params)
        if entry.route.check is not None:
            await entry.route.check(self._server.app, scope["path_params"])
        scope[KEY] = RequestContext(
            self._server,
            self._principal,
            self._request_id,
            self._address,
            base=self._base,
            traceparent=self._headers.get(b"traceparent"),
        )
        return entry

    def _pick(self, found: RouteMatch[RoutedHandler] | None) -> RoutedHandler | None:
        if found is None:
            return None
        method = self._scope["method"]
        entry = found.methods.get("GET" if method == "HEAD" else method)
        if entry is None and all(other.route.least is None for other in found.methods.values()):
            # A public path shows every client which methods it has.
            raise _no_method(method, found)
        return entry

    async def _identify(self, entry: RoutedHandler | None) -> None:
        known: Principal | None = self._scope.get(PRINCIPAL)
        if known is not None:
            self._principal = known
            return
        try:
            target = Target(self._scope["method"], self._sent_path, self._scope["query_string"])
            self._principal = await self._server.credentials.identify(self._headers, self._address, target)
            if (connection := self._scope.get(CONNECTION)) is not None:
                connection.vouch()
        except Refusal as refusal:
            if entry is None or not entry.route.is_page or refusal.status != 401:  # noqa: PLR2004 - not logged in
                raise
            where = quote(unquote(f"{self._base}{self._path}"), safe="/")
            raise Refusal(303, "log in first", {"location": f"{self._base}/login?next={where}"}) from None

    def _check_doubles(self) -> None:
        """Refuse headers that a proxy may read differently."""
        names = [name for name, _ in self._scope["headers"]]
        for name in _ONCE:
            if names.count(name) > 1:
                raise Refusal(400, f"{name.decode()}: must be sent once")

    def _check_query(self, entry: RoutedHandler) -> None:
        """Refuse a parameter the route does not have, and one given twice: a filter that is dropped would show too much."""
        names: set[str] = set()
        for part in filter(None, self._scope["query_string"].split(b"&")):
            name = unquote_plus(part.partition(b"=")[0].decode("latin-1"))
            if name not in entry.query:
                raise Refusal(
                    400, f"{shown(name)}: is not a parameter of this route; it has {', '.join(sorted(entry.query)) or 'none'}"
                )
            if name in names:
                raise Refusal(400, f"{name}: is given more than once")
            names.add(name)

    def _check_csrf(self) -> None:
        """Ask browsers for the token of their session; a form brings it in its body."""
        csrf = self._principal.csrf
        if csrf is None or self._scope["method"] in _SAFE or self._is_form:
            return
        if not hmac.compare_digest(csrf.encode(), self._headers.get(b"x-csrf-token", b"")):
            raise Refusal(403, "x-csrf-token: the session's token is needed; GET /api/v1/session has it")

    def _check_form_csrf(self, body: bytes) -> None:
        csrf = self._principal.csrf
        if csrf is None or self._scope["method"] in _SAFE or not self._is_form:
            return
        if not hmac.compare_digest(csrf, forms.form_of(body).get("csrf", "").encode("ascii", "replace").decode()):
            raise Refusal(403, "csrf: the session's token is needed in the form")

    @property
    def _path(self) -> str:
        """The path as it was sent: decoded, it could bring a line break into a log."""
        return self._raw_path.decode("ascii", "backslashreplace")

    @property
    def _is_form(self) -> bool:
        return self._headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == forms.FORM

    async def _read(self, route: Route, receive: Receive) -> bytes:
        """Read the body whole, within its bounds of size and time; they are small where no credential was needed."""
        if self._is_read:
            return b""
        limits = self._server.limits
        is_open = route.least is None and route.check is None
        most = min(limits.public_body_bytes, limits.body_bytes) if is_open else limits.body_bytes
        within = min(limits.headers_within, limits.body_within) if is_open else limits.body_within
        too_large = Refusal(413, f"body: must not be larger than {most} bytes")
        # The parser has checked that it is a number.
        if int(self._headers.get(b"content-length", b"0")) > most:
            raise too_large
        parts: list[bytes] = []
        size, has_more = 0, True
        try:
            async with asyncio.timeout(within.total_seconds()):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "body: the client went away")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise too_large
                    self._hold(size)
                    has_more = message.get("more_body", False)
        except TimeoutError:
            raise Refusal(408, "body: did not arrive in time") from None
        self._is_read = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _hold(self, size: int) -> None:
        """Count a large body among all that are in memory; one too many has to come again later."""
        limits = self._server.limits
        more = size - limits.public_body_bytes - self._held
        if more > 0:
            self._held += more
            self._server.held_bytes += more
            if self._server.held_bytes > limits.held_body_bytes:
                raise Refusal(503, "too many large bodies are under way; try again later", {"retry-after": "1"})

    def _check_kind(self) -> None:
        kind = self._headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != JSON and not (kind == forms.FORM and self._raw_path in forms.PATHS):
            raise Refusal(415, "content-type: must be application/json")

    async def _run(self, entry: RoutedHandler, body: bytes, receive: Receive) -> None:
        message: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def replay() -> Message:
            nonlocal message
            given, message = message, None
            return await receive() if given is None else given

        self._scope["fastapi_middleware_astack"] = self._server.uploads
        try:
            await self._run_route(entry, replay)
        except StoreBusy as error:
            if not entry.route.is_costly:
                raise
            raise read_took_too_long() from error

    async def _run_route(self, entry: RoutedHandler, replay: Receive) -> None:
        if entry.route.is_stream:
            with self._server.exporting() if entry.route.is_costly else nullcontext():
                await entry.answer(self._scope, replay, self._pass)
            return
        try:
            async with asyncio.timeout(self._server.limits.answer_within.total_seconds()):
                if entry.route.is_costly:
                    self._read_permit = await self._server.read_queue.take(self._principal.name)
                await entry.answer(self._scope, replay, self._pass)
        except TimeoutError:
            raise Refusal(503, "the answer took too long", {"retry-after": "1"}) from None

    async def _pass(self, message: Message) -> None:
        """Send an answer on, with what every answer carries."""
        if message["type"] == "http.response.start":
            # From here on it is the client's time: one that reads slowly must not hold up others.
            self._end_turn()
            self._is_started = True
            self._status = message["status"]
            if self._principal.csrf is not None and self._scope["method"] not in _SAFE:
                self._server.snapshots.forget()
            headers = [*message.get("headers", ()), *_ALWAYS, (b"x-request-id", self._request_id.encode())]
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
            if self._scope.get("scheme") == "https":
                headers.append(_HSTS)
            if not self._is_read:
                # The rest will not be read, so no further request can come on this connection.
                headers.append(_CLOSE)
            message["headers"] = headers
        await self._send(message)

    def _end_turn(self) -> None:
        if self._read_permit is not None:
            self._read_permit.end()

    async def _refuse(self, entry: RoutedHandler | None, error: Exception) -> None:
        route = entry.route if entry else None
        refusal = refusal_of(error, route.statuses if route else MappingProxyType({}), route.handler if route else None)
        self._status = refusal.status
        if refusal.status == INTERNAL:
            log.error("%s %s failed", self._scope["method"], self._path, exc_info=error)
        elif refusal.status == UNAVAILABLE and self._server.unavailable.is_due():
            # The client does not learn why.
            log.warning("%s %s: %s", self._scope["method"], self._path, error)
        if refusal.status in _AUDITED:
            self._note(refusal)
        if self._is_started:
            # Half an answer is out; closing the connection is the only way left to show that it is not whole.
            raise error
        await self._say(refusal)

    def _note(self, refusal: Refusal) -> None:
        what = f"{self._scope['method']} {self._path}"
        self._server.notes.refused(
            self._principal.name[:MAX_NAME],
            what,
            self._address,
            request_id=self._request_id,
            status=refusal.status,
            why=refusal.text,
        )

    async def _say(self, refusal: Refusal) -> None:
        if self._is_browsing:
            body, kind = error_page(refusal.status, refusal.text, self._request_id, base=self._base), b"text/html; charset=utf-8"
        else:
            body, kind = json.dumps({"error": refusal.text}, ensure_ascii=False).encode(errors="replace"), JSON
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in refusal.headers.items()]
        await self._pass({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._pass({"type": "http.response.body", "body": body})

    @property
    def _is_browsing(self) -> bool:
        """Whether a browser page is asked for, and not a program's answer."""
        is_page = not self._raw_path.startswith((b"/api/", b"/assets/")) and self._raw_path not in PROBES
        return is_page and self._scope["method"] == "GET" and b"text/html" in self._headers.get(b"accept", b"")

    def _tell(self) -> None:
        level = logging.INFO if self._status >= 400 else logging.DEBUG  # noqa: PLR2004 - where refusals begin
        # The path only: what comes after it may hold a login code.
        fields = {"status": self._status, "address": self._address, "principal": self._principal.name}
        log.log(level, "%s %s", self._scope["method"], self._path, extra=fields)


def _no_method(method: str, found: RouteMatch[RoutedHandler]) -> Refusal:
    """Refuse a method that a path does not have."""
    allowed = ", ".join(sorted(set(found.methods) | ({"HEAD"} if "GET" in found.methods else set())))
    return Refusal(405, f"{method} is not a method of this path; it has {allowed}", {"allow": allowed})
