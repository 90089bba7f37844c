"""What a server's answer means: one of our own errors, or an event of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from windlass.core.payload import decode
from windlass.errors import (
    CanaryEnded,
    CanaryNotFound,
    CanaryRunning,
    DuplicateJob,
    ExecutionNotFound,
    Forbidden,
    InvalidInput,
    InvalidTransition,
    JobNotFound,
    LeaseHeld,
    LeaseLost,
    LetterGroupNotFound,
    LetterNotFound,
    LetterSettled,
    NotFound,
    Refused,
    RemoteError,
    ServerUnavailable,
    SlotTaken,
    TooManyRequests,
    Unauthorized,
    UnknownTask,
    WindlassError,
)
from windlass.http_client.records import RemoteChange

_FIRST_FAILURE = 500
_GOT = re.compile(r" \(got .*\)$", re.DOTALL)

Build = Callable[[re.Match[str]], WindlassError]


def _number(text: str) -> int:
    return int(text)


def _transition(found: re.Match[str]) -> WindlassError:
    move = found["move"].removesuffix(" of").replace(" the ", " ") + (found["now"] or "")
    return InvalidTransition(_number(found["job"]), move, found["state"], found["target"])


_NO_MOVE = r"(?:it is not running \()?(?P<state>\w+) → (?P<target>\w+) is not a legal move\)?"
_KNOWN: tuple[tuple[re.Pattern[str], Build], ...] = tuple(
    (re.compile(pattern, re.DOTALL), build)
    for pattern, build in (
        (rf"cannot (?P<move>.+) job (?P<job>\d+)(?P<now> now)?: {_NO_MOVE}", _transition),
        (r"task: is not registered; .*\(got '(?P<task>.*)'\)", lambda found: UnknownTask(found["task"])),
        (r"job '?(?P<job>[^ ]+?)'? not found(?:; .*)?", lambda found: JobNotFound(found["job"])),
        (r"dead letter (?P<id>\d+) not found(?:; .*)?", lambda found: LetterNotFound(_number(found["id"]))),
        (
            r"no dead letter has the fingerprint '(?P<fingerprint>.*)'; .*",
            lambda found: LetterGroupNotFound(found["fingerprint"]),
        ),
        (r"canary (?P<id>\d+) not found; .*", lambda found: CanaryNotFound(_number(found["id"]))),
        (r"canary (?P<id>\d+) is under way for these letters; .*", lambda found: CanaryRunning(_number(found["id"]))),
        (
            r"cannot cancel canary (?P<id>\d+): it is (?P<state>\w+)",
            lambda found: CanaryEnded(_number(found["id"]), found["state"]),
        ),
        (
            r"cannot (?P<move>\w+) dead letter (?P<id>\d+): (?P<why>.*)",
            lambda found: LetterSettled(_number(found["id"]), found["move"], found["why"]),
        ),
        (
            r"job (?P<job>\d+) cannot come back: job (?P<holder>\d+) holds its unique key",
            lambda found: SlotTaken(_number(found["job"]), _number(found["holder"])),
        ),
        (
            r"task '(?P<task>.*)' already has job (?P<holder>\d+) with unique key '?(?P<key>.*?)'?",
            lambda found: DuplicateJob(found["task"], found["key"], _number(found["holder"])),
        ),
        (
            r"cannot (?P<move>\w+) job (?P<job>\d+): (?P<worker>.*) holds its lease; .*",
            lambda found: LeaseHeld(_number(found["job"]), found["worker"], found["move"]),
        ),
        (r"the lease on job (?P<job>\d+) is held by somebody else or has ended", lambda found: LeaseLost(_number(found["job"]))),
        (
            r"job (?P<job>\d+) has no execution (?P<number>\d+)(?:; .*)?",
            lambda found: ExecutionNotFound(_number(found["job"]), _number(found["number"])),
        ),
    )
)
"""How our errors read, each with the one it becomes again; a test reads every one of them back."""

_BY_STATUS: Mapping[int, type[RemoteError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: ServerUnavailable,
    429: TooManyRequests,
}


def error_of(status: int, answer: Any, headers: Mapping[str, str]) -> WindlassError:
    """Return what went wrong."""
    text = answer["error"] if isinstance(answer, dict) and isinstance(answer.get("error"), str) else f"answered with {status}"
    error = _known(text) or _by_status(status, text, headers)
    error.args = (text,)
    error.request_id = headers.get("x-request-id")
    return error


def _known(text: str) -> WindlassError | None:
    for pattern, build in _KNOWN:
        found = pattern.fullmatch(text)
        if found is not None:
            return build(found)
    return None


def _by_status(status: int, text: str, headers: Mapping[str, str]) -> WindlassError:
    if status == 400:  # noqa: PLR2004 - a value of ours was refused
        field, _, reason = text.partition(": ")
        return InvalidInput(field, None, _GOT.sub("", reason) or text)
    error = _BY_STATUS.get(status, ServerUnavailable if status >= _FIRST_FAILURE else Refused)(text, status)
    if isinstance(error, TooManyRequests) and headers.get("retry-after", "").isdecimal():
        error.retry_after = float(headers["retry-after"])
    return error


EVENT_STREAM = "text/event-stream"


class Lines:
    """Turns the lines of a stream into changes."""

    def __init__(self, read: Callable[[object], RemoteChange]) -> None:
        """Begin between two events."""
        self._read = read
        self._data: list[str] = []

    def add(self, line: str) -> Iterator[RemoteChange]:
        """Take a line; an empty one ends an event."""
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").strip())
        elif not line and self._data:
            text, self._data = "\n".join(self._data), []
            yield self._read(decode(text, field="event"))
