"""Kinds of values that payloads have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from windlass.core.retry import RetrySpec
from windlass.packs.outgoing import UrlRefused, check_headers, parse_url

LANE = "fast"
"""The lane of all of these."""
RETRY = RetrySpec(base=timedelta(seconds=10), cap=timedelta(hours=1))
MAX_ATTEMPTS = 8
"""About twenty minutes: a server that restarts or a network that is away must not cost a message."""
TIMEOUT = "2m"
"""The async jobs system's for its fast lane, in whichever pool they run."""

_MOST_HEADERS = 20


class Payload(BaseModel):
    """What a job carries: a field it does not have is refused and not dropped."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _web_address(text: str) -> str:
    try:
        parse_url(text)
    except UrlRefused as error:
        raise ValueError(error.why or str(error)) from None
    return text


def _headers(value: dict[str, str]) -> dict[str, str]:
    if len(value) > _MOST_HEADERS:
        raise ValueError(f"has more than {_MOST_HEADERS}")
    return check_headers(value)


# A line break would begin the next header.
Line = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")]
MailAddress = Annotated[
    str,
    StringConstraints(
        max_length=254,
        pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
        r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$",
    ),
]
"""One address without a display name, in ASCII."""
WebAddress = Annotated[str, StringConstraints(max_length=2048), AfterValidator(_web_address)]
Headers = Annotated[
    dict[Annotated[str, StringConstraints(max_length=100)], Annotated[str, StringConstraints(max_length=4096)]],
    AfterValidator(_headers),
]
Json = dict[str, Any] | list[Any] | str | int | float | bool | None
