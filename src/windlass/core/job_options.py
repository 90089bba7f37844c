"""The options of an enqueue that are the same from Python and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

Duration = str | float | timedelta
"""Seconds, or text as in `90s` or `1h30m`."""


class CommonOptions(TypedDict, total=False):
    """Options of both; what is left out comes from the task."""

    lane: str
    priority: int
    """Higher first; over HTTP from 0 to 100."""
    run_at: datetime
    delay: Duration
    max_attempts: int
    timeout: Duration
    unique_key: str
    """Over HTTP, it also makes an enqueue safe to send again when the connection breaks, which is then done."""
    subject: str
    correlation_id: str
    target_count: int
    item_key: Sequence[str]
    collection: str
    metadata: Mapping[str, Any]
