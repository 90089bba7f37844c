"""Answers that say: not now."""

from __future__ import annotations

from windlass.packs.outgoing import HttpAnswer

_TOO_MANY = 429
_SERVER_ERROR = 500
LONGEST_WAIT_S = 86_400.0


def asks_to_wait(status: int) -> bool:
    """Whether the same request may be answered later."""
    return status == _TOO_MANY or status >= _SERVER_ERROR


def wait_of(answer: HttpAnswer) -> float | None:
    """Read how long a host asks to be left alone, when it says so in seconds."""
    said = answer.headers.get("retry-after", "").strip()
    return min(float(said), LONGEST_WAIT_S) if said.isascii() and said.isdigit() else None
