"""The requests and answers of the interval scheduler's document, as it has them."""

from __future__ import annotations

import json
import re
from typing import Any

INTERVALS = [
    '{"interval_minutes": 30, "interval_type": "minutes"}',
    '{"interval_minutes": 6, "interval_type": "hours"}',
    '{"interval_minutes": 1, "interval_type": "days"}',
]

CREATE_INTERVAL = """\
{
  "source_id": "news-site",
  "source_name": "example.com",
  "url": "https://example.com",

  // NEW: Interval-based scheduling
  "interval_minutes": 30,
  "interval_type": "minutes",
  "schedule_enabled": true,

  // NEW: Retry configuration
  "max_retries": 3,
  "retry_backoff_seconds": 60,

  // NEW: Metadata
  "metadata": {
    "category": "news",
    "priority": "high"
  }
}"""

CREATE_ONCE = """\
{
  "source_id": "news-site",
  "source_name": "example.com",
  "url": "https://example.com",
  "schedule_enabled": false  // Run once, immediately
}"""

CURL = (
    '{"source_name": "example.com", "url": "https://example.com", "interval_minutes": 30, "interval_type": "minutes", '
    '"schedule_enabled": true}'
)

ADJUST_RETRIES = """\
   {
     "max_retries": 5,
     "retry_backoff_seconds": 120
   }"""

PAUSED = """\
{
  "id": "...",
  "status": "paused",
  "is_paused": true,
  "paused_at": "2025-12-29T10:30:00Z",
  ...
}"""

RESUMED = """\
{
  "id": "...",
  "status": "scheduled",
  "is_paused": false,
  "next_run_at": "2025-12-29T11:00:00Z",  // Recalculated
  ...
}"""

CANCELLED = """\
{
  "id": "...",
  "status": "cancelled",
  "cancelled_at": "2025-12-29T10:35:00Z",
  ...
}"""

RETRIED = """\
{
  "id": "...",
  "status": "pending",  // Reset to pending
  "current_retry_count": 0,  // Reset retry counter
  ...
}"""

EXECUTIONS = """\
{
  "executions": [
    {
      "id": "exec-uuid",
      "job_id": "job-uuid",
      "execution_number": 42,
      "status": "completed",
      "started_at": "2025-12-29T10:00:00Z",
      "completed_at": "2025-12-29T10:02:30Z",
      "duration_ms": 150000,
      "items_crawled": 25,
      "items_indexed": 23,
      "retry_attempt": 0
    },
    ...
  ],
  "total": 100,
  "limit": 50,
  "offset": 0
}"""

EXECUTION = """\
{
  "id": "exec-uuid",
  "job_id": "job-uuid",
  "execution_number": 42,
  "status": "completed",
  "started_at": "2025-12-29T10:00:00Z",
  "completed_at": "2025-12-29T10:02:30Z",
  "duration_ms": 150000,
  "items_crawled": 25,
  "items_indexed": 23,
  "error_message": null,
  "cpu_time_ms": 120000,
  "memory_peak_mb": 256,
  "retry_attempt": 0,
  "metadata": {}
}"""

JOB_STATS = """\
{
  "total_executions": 100,
  "successful_runs": 95,
  "failed_runs": 5,
  "average_duration_ms": 145000,
  "last_execution_at": "2025-12-29T10:00:00Z",
  "next_scheduled_at": "2025-12-29T10:30:00Z",
  "success_rate": 0.95
}"""

METRICS = """\
{
  "jobs": {
    "scheduled": 25,
    "running": 3,
    "completed": 1200,
    "failed": 50,
    "cancelled": 10
  },
  "executions": {
    "total": 1288,
    "average_duration_ms": 142000,
    "success_rate": 0.96
  },
  "last_check_at": "2025-12-29T10:30:00Z",
  "last_metrics_update": "2025-12-29T10:29:30Z",
  "stale_locks_cleared": 5
}"""

# The columns of the document's two tables, with whether they may be null.
_JOB_COLUMNS = """\
id source_id? source_name? url? status created_at updated_at started_at? completed_at? error_message? interval_minutes?
interval_type? next_run_at? is_paused paused_at? cancelled_at? max_retries retry_backoff_seconds current_retry_count lock_token?
lock_acquired_at? metadata schedule_time? schedule_enabled"""
JOB_COLUMNS = _JOB_COLUMNS.split()

_EXECUTION_COLUMNS = """\
id job_id execution_number status started_at completed_at? duration_ms? items_crawled items_indexed error_message? stack_trace?
cpu_time_ms? memory_peak_mb? retry_attempt metadata"""
EXECUTION_COLUMNS = _EXECUTION_COLUMNS.split()

_COMMENT = re.compile(r"\s+//[^\n]*")
_REST = re.compile(r",\s*\.\.\.(?=\s*[}\]])")


def read(example: str) -> Any:
    """Read an example without its comments and its `...`."""
    return json.loads(_REST.sub("", _COMMENT.sub("", example)))


def check_columns(shown: dict[str, Any], columns: list[str]) -> None:
    for column in columns:
        name = column.rstrip("?")
        assert name in shown
        assert shown[name] is not None or column.endswith("?"), name


def check_like(shown: Any, example: Any, path: str = "answer") -> None:
    """See that an answer has everything an example has, each of the same type, and every time as the example writes it."""
    if isinstance(example, dict):
        for key, value in example.items():
            assert key in shown, f"{path}.{key} is missing"
            check_like(shown[key], value, f"{path}.{key}")
    elif isinstance(example, list):
        for one in shown:
            check_like(one, example[0], path)
    elif isinstance(example, str) and example.endswith("Z"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", shown), path
    elif example is not None:
        assert type(shown) is type(example), f"{path}: {shown!r} is not like {example!r}"
