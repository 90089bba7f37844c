"""Sends every request of a pack: bounded in time and size, never to a private address unless allowed."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, cached_property
from typing import Final, NamedTuple

import httpcore2

from windlass import __version__
from windlass.app import Windlass
from windlass.errors import InvalidInput
from windlass.packs.outgoing.body import Wanted, read_body, too_large
from windlass.packs.outgoing.dial import Dial, Dns, Resolve, look_up
from windlass.packs.outgoing.errors import BodyTooLarge, TooManyRedirects, Unreachable
from windlass.packs.outgoing.url import WebUrl, join_url, parse_url

USER_AGENT = f"windlass/{__version__}"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SEE_OTHER = 303
# They may give the length of a body that they do not have.
_BODILESS = frozenset({204, 304})
_POST_BECOMES_GET = frozenset({301, 302})
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "trailer", "upgrade"})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALIDATOR = re.compile(r"[\x20-\x7e]{1,500}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Everything else may be a credential, whatever it is called.
_FOR_ANYBODY = frozenset(
    {"accept", "accept-language", "content-type", "content-encoding", "user-agent", "if-none-match", "if-modified-since", "range"}
)


_BROKEN: Final = (httpcore2.NetworkError, httpcore2.ProtocolError, OSError)


class Limits(NamedTuple):
    """How long a request may take and how large its answer may be, all redirects together."""

    connect_s: float = 5.0
    total_s: float = 20.0
    max_bytes: int = 2_000_000
    """Of the body, as it is sent and as it is unpacked."""
    max_redirects: int = 5


LIMITS: Final = Limits()


class Answer(NamedTuple):
    """What came back."""

    status: int
    url: str
    """The final one, after redirects."""
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes
    fault: str | None = None
    """Why there is no body, when it was wanted only if it can be read."""

    def validator(self, name: str) -> str | None:
        """Read what makes the next request conditional; what could not be sent back is not kept."""
        said = self.headers.get(name, "")
        return said if is_validator(said) else None


class _Request(NamedTuple):
    method: str
    url: WebUrl
    headers: Mapping[str, str]
    body: bytes | None

    def redirected(self, status: int, location: str) -> _Request:
        """Return what to send to the next address, as browsers do it."""
        url = join_url(self.url, location)
        headers = self.headers
        if url.origin != self.url.origin:
            headers = {name: value for name, value in headers.items() if name in _FOR_ANYBODY}
        becomes_get = (status == _SEE_OTHER and self.method != "HEAD") or (status in _POST_BECOMES_GET and self.method == "POST")
        if not becomes_get:
            return _Request(self.method, url, headers, self.body)
        bare = {name: value for name, value in headers.items() if not name.startswith("content-")}
        return _Request("GET", url, bare, None)


class Outgoing:
    """Sends every request of a pack: bounded in time and size, never to a private address unless allowed.

    Holds no connection between requests, so any event loop may use it.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        user_agent: str = USER_AGENT,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take how names are looked up and which certificates are trusted from the system unless they are set."""
        self._allow_private = allow_private
        self._user_agent = user_agent
        self._dns = Dns()
        self._resolve: Resolve = self._dns if resolve is None else resolve
        self._given_tls = tls

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpcore2.default_ssl_context()

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limits: Limits = LIMITS,
        follow: bool = True,
        wanted: Wanted = Wanted.WHOLE,
    ) -> Answer:
        """Send a request and read the answer, whatever its status; raises OutgoingError."""
        request = _Request(_method(method), parse_url(url), self._headers(headers or {}), body)
        try:
            async with asyncio.timeout(limits.total_s) as deadline:
                for _ in range(limits.max_redirects + 1):
                    async with _clear_errors(request.url), self._asked(request, limits) as response:
                        headers = _read_headers(response)
                        if not follow or response.status not in _REDIRECTS or "location" not in headers:
                            reading = _Reading(request, response, headers, limits)
                            return await reading.read(wanted, deadline.when())
                        request = request.redirected(response.status, headers["location"])
        except TimeoutError:
            raise Unreachable(f"{request.url.origin}: no whole answer within {limits.total_s:g} s") from None
        raise TooManyRedirects(f"{request.url.origin}: still redirected after {limits.max_redirects} times")

    async def aclose(self) -> None:
        """End the threads that look up names."""
        self._dns.close()

    def _headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Check the caller's headers, and add the user agent."""
        return {"accept": "*/*", "user-agent": self._user_agent, **check_headers(given)}

    @asynccontextmanager
    async def _asked(self, request: _Request, limits: Limits) -> AsyncIterator[httpcore2.Response]:
        """Open a connection for this request alone, and close it with the block."""
        url = request.url
        addresses = await look_up(url, self._resolve, allow_private=self._allow_private, timeout_s=limits.connect_s)
        dial = Dial(addresses)
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=_sent_headers(request),
            content=request.body or b"",
            extensions={"timeout": {"connect": limits.connect_s, "read": limits.total_s, "write": limits.total_s}},
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(dial.aclose)
            tls = self._tls if url.scheme == "https" else None
            connection = httpcore2.AsyncHTTPConnection(sent.url.origin, ssl_context=tls, network_backend=dial)
            stack.push_async_callback(connection.aclose)
            response = await connection.handle_async_request(sent)
            stack.push_async_callback(response.aclose)
            yield response


class _Reading(NamedTuple):
    """An answer whose body is still to be read."""

    request: _Request
    response: httpcore2.Response
    headers: Mapping[str, str]
    limits: Limits

    async def read(self, wanted: Wanted, deadline: float | None) -> Answer:
        """Read what is wanted of it."""
        try:
            return self._answer(await self._body(wanted, deadline))
        except (BodyTooLarge, Unreachable, TimeoutError, httpcore2.TimeoutException, *_BROKEN) as error:
            if wanted is not Wanted.IF_READABLE:
                raise
            return self._answer(b"", str(error) or "the answer did not end in time")

    async def _body(self, wanted: Wanted, deadline: float | None) -> bytes:
        limit, cuts = self.limits.max_bytes, wanted is Wanted.BEGINNING
        if wanted is Wanted.NOTHING:
            return b""
        has_body = self.request.method != "HEAD" and self.response.status not in _BODILESS
        if has_body and not cuts and _announced(self.headers) > limit:
            raise too_large(limit)
        # Before the time of the whole request is up, for then the status would be lost too.
        soon = deadline - self.limits.total_s / 20 if deadline is not None and wanted is Wanted.IF_READABLE else None
        async with asyncio.timeout_at(soon):
            return await read_body(self.response.aiter_stream(), self.headers, limit, cuts=cuts)

    def _answer(self, body: bytes, fault: str | None = None) -> Answer:
        return Answer(self.response.status, str(self.request.url), self.headers, body, fault)


@asynccontextmanager
async def _clear_errors(url: WebUrl) -> AsyncIterator[None]:
    """Turn what the network raises into what a pack decides by."""
    try:
        yield
    except httpcore2.TimeoutException:
        raise Unreachable(f"{url.origin}: did not answer in time") from None
    except _BROKEN as error:
        raise Unreachable(f"{url.origin}: {str(error) or type(error).__name__}") from error


def is_validator(text: str) -> bool:
    """Whether an ETag or a date can be kept and sent back."""
    return _VALIDATOR.fullmatch(text) is not None


def check_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by names in lower case; raises InvalidInput for what would change the request around them."""
    for name, value in given.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidInput("headers", name, "is not a header that can be sent")
        if name.lower() in _OURS:
            raise InvalidInput("headers", name, "is not for callers to set")
    return {name.lower(): value for name, value in given.items()}


def _method(given: str) -> str:
    method = given.upper()
    if method not in _METHODS:
        raise InvalidInput("method", given, f"must be one of {', '.join(sorted(_METHODS))}")
    return method


def _sent_headers(request: _Request) -> list[tuple[bytes, bytes]]:
    headers = {"host": request.url.authority, **request.headers, "accept-encoding": "gzip, deflate", "connection": "close"}
    if request.body is not None or request.method in {"POST", "PUT", "PATCH"}:
        headers["content-length"] = str(len(request.body or b""))
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def _read_headers(response: httpcore2.Response) -> dict[str, str]:
    """Read the headers; of a repeated one all values, with commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _announced(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isdigit() else 0


def outgoing(app: Windlass) -> Outgoing:
    """Return the sender that fits an application's settings; the process shares it, so it is not closed here."""
    return _shared(allow_private=app.settings.allow_private_addresses)


@cache
def _shared(*, allow_private: bool) -> Outgoing:
    return Outgoing(allow_private=allow_private)
