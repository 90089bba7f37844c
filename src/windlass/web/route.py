"""A row of the table of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response

from windlass.app import Windlass
from windlass.core.access import Role

PUBLIC = None
"""The least role of routes that need no credential."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One method of one path: who may call it, what answers, and with which statuses."""

    method: str
    path: str
    least: Role | None
    handler: Callable[..., Awaitable[Any]]
    """A FastAPI path function: its signature is the documentation, its docstring the summary."""
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses it may answer with beside those of every route."""
    others: Mapping[int, Any] = field(default_factory=dict)
    """Further good answers: status and model."""
    is_page: bool = False
    """For browsers: one without a session is redirected to the login page. Not in the API's documentation."""
    kinds: tuple[str, ...] = ()
    """The media types of an answer that is not JSON."""
    is_stream: bool = False
    """Answers for as long as the client listens."""
    is_costly: bool = False
    """Reads much: such routes take turns. A stream does not, but there may be only a few."""
    is_callback: bool = False
    """Called by programs of others, by their rules: any content type, and parameters that we have no use for."""
    is_scraped: bool = False
    """Also answers to the scrape token, which is good for nothing else."""
    check: Callable[[Windlass, Mapping[str, str]], Awaitable[None]] | None = None
    """Refuses by the parameters of the path, before the body is read: for public paths that hold a secret of their own."""
    hot: Callable[[Request], Awaitable[Response]] | None = None
    """Answers in place of the handler, which then only documents: for routes whose speed counts."""
    statuses: Mapping[type[Exception], int] = field(default_factory=dict)
    """Where this route's face has another status for an error."""
