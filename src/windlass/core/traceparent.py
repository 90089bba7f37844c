"""The W3C trace context of a caller, as one line: `00-<trace id>-<span id>-<flags>`."""

from __future__ import annotations

import re

from windlass.errors import InvalidInput

_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_LENGTH = 55
_SAMPLED = 1


def check_traceparent(text: str) -> None:
    """Raise InvalidInput for what is no trace context."""
    if _FORM.fullmatch(text) is None:
        example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        raise InvalidInput("traceparent", text, f"must be a W3C trace context, as in {example}")


def read_header(text: str) -> str | None:
    """Return the trace context of a request's header; None where it is malformed or its trace is not sampled.

    A bad header is ignored, as the standard asks for, and a trace that is not recorded is not worth keeping.
    """
    # A later version of the standard may have more behind it.
    kept, rest = text[:_LENGTH], text[_LENGTH:]
    if _FORM.fullmatch(kept) is None or (rest and (kept.startswith("00") or not rest.startswith("-"))):
        return None
    return f"00{kept[2:]}" if int(kept[-2:], 16) & _SAMPLED else None


def trace_id_of(traceparent: str) -> str:
    """Return the id of the whole trace."""
    return traceparent[3:35]
