"""How requests reach a server: which address, with which credentials, and when once more."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from random import Random, SystemRandom
from typing import Any, TypeVar

import httpx2

from windlass.core.durations import Duration
from windlass.core.payload import decode, encode
from windlass.errors import ConfigError, InvalidInput, RemoteError, ServerUnavailable
from windlass.http_client.answers import error_of
from windlass.http_client.ask import Ask, seconds

T = TypeVar("T")
_MOST_BYTES = 2**30
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout)
_CUT_OFF = (httpx2.ReadError, httpx2.WriteError, httpx2.CloseError, httpx2.RemoteProtocolError)


class Courier:
    """Everything about sending but the sending itself, for both clients."""

    def __init__(
        self,
        url: str | Sequence[str] | None,
        token: str | None,
        *,
        timeout: Duration,
        retries: int,
        worker: str | None = None,
        more: Callable[[], Mapping[str, str]] | None = None,
        rng: Random | None = None,
    ) -> None:
        """Take what is not given from WINDLASS_URL and WINDLASS_TOKEN; of several addresses the next is tried when one fails."""
        given = os.environ.get("WINDLASS_URL", "http://127.0.0.1:8060") if url is None else url
        self._urls = [_checked(one) for one in (given.split(",") if isinstance(given, str) else given)]
        if not self._urls:
            raise ConfigError("url: give the address of a server")
        self._at = 0
        self._retries = retries
        self._rng = rng or SystemRandom()
        self._more = more
        secret = os.environ.get("WINDLASS_TOKEN") if token is None else token
        self.timeout = seconds(timeout, "timeout")
        self.headers = {"accept": "application/json"} | ({} if secret is None else {"authorization": f"Bearer {secret}"})
        if worker is not None:
            self.headers["x-worker-id"] = worker

    def url(self, path: str) -> str:
        """Return the address of a path, at the server in use."""
        return f"{self._urls[self._at]}{path}"

    def request(self, ask: Ask[Any]) -> dict[str, Any]:
        """Return what to send; a body that is not JSON raises InvalidPayload."""
        content = None if ask.body is None else encode(ask.body, field="body", limit=_MOST_BYTES).encode()
        headers = {} if self._more is None else dict(self._more())
        if content is not None:
            headers["content-type"] = "application/json"
        return {
            "method": ask.method,
            "url": self.url(ask.path),
            "params": dict(ask.query) or None,
            "content": content,
            "headers": headers,
        }

    def pause_s(self, ask: Ask[Any], error: httpx2.TransportError, tries: int) -> float:
        """Return how long to wait before the next try; raises ServerUnavailable when there is none."""
        # What never left this machine may always be sent again; what may have arrived, only if it does no harm twice.
        may_repeat = isinstance(error, _NEVER_SENT) or (ask.is_repeatable and isinstance(error, _CUT_OFF))
        self._at = (self._at + 1) % len(self._urls)
        if not may_repeat or tries > self._retries:
            raise unavailable(error, f"{ask.method} {ask.path}") from error
        grown = _FIRST_PAUSE_S * (1 << min(tries - 1, 10))
        return min(grown, _LONGEST_PAUSE_S) * self._rng.uniform(0.5, 1.0)

    def read(self, ask: Ask[T], response: httpx2.Response) -> T:
        """Read an answer as its record, or raise its error."""
        answer = read_json(response)
        if not response.is_success:
            raise error_of(response.status_code, answer, response.headers)
        try:
            return ask.read(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteError(f"{ask.method} {ask.path}: answered with something else than a Windlass server: {error}") from error


def read_json(response: httpx2.Response) -> Any:
    """Read a body; one that is not JSON came from something else than our server."""
    try:
        return decode(response.text, field="answer")
    except InvalidInput as error:
        if not response.is_success:
            return None
        raise RemoteError(
            f"the answer of {response.url} is not JSON: is this a Windlass server?", response.status_code
        ) from error


def unavailable(error: httpx2.TransportError, what: str) -> ServerUnavailable:
    """Make the error for a missing answer, with its cause."""
    reason = "timed out" if isinstance(error, httpx2.TimeoutException) else str(error) or type(error).__name__
    return ServerUnavailable(f"{what}: no answer: {reason}")


def _checked(url: str) -> str:
    kept = url.strip().rstrip("/")
    if not kept.startswith(("http://", "https://")):
        raise ConfigError(f"url: {url!r} must begin with http:// or https://")
    return kept
