"""A claimed job made by hand, for code that needs no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from windlass.core.job import Claimed

_AT = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)


def a_claimed_job(**changes: Any) -> Claimed:
    """Return a job of the task `email` in its first run."""
    usual: dict[str, Any] = dict.fromkeys(Claimed._fields) | dict.fromkeys(("priority", "crashes", "consecutive_failures"), 0)
    usual |= dict.fromkeys(("completed_runs", "progress_count", "result_count"), 0) | {"attempt": 1, "execution": 1, "token": 99}
    usual |= {"id": 7, "task": "email", "lane": "default", "payload": "{}", "retry": "task", "worker": "w"}
    usual |= {"run_at": _AT, "claimed_at": _AT, "lease_expires_at": _AT + timedelta(seconds=30)}
    return Claimed(**usual | changes)
