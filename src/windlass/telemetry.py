"""Log lines that carry the job they are about: text for people, JSON for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from windlass.core.current import current_job, current_request
from windlass.core.one_line import one_line
from windlass.errors import ConfigError

LOG_EVERY_S = 60.0
"""How often a lasting trouble is logged unless stated otherwise."""
STACK_TRACE = "stack_trace"
"""The field of a record that holds a stack trace which was written elsewhere, or earlier."""
LOGS = "_WINDLASS_LOGS"
"""The environment variable from which child processes learn how their worker logs. Not among the settings."""
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", STACK_TRACE}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Gather what a line holds beside its message: the running job or request, and what the caller gave as `extra`."""
    job = current_job()
    fields: dict[str, Any] = {} if job is None else job.log_fields
    request_id = current_request.get()
    if request_id is not None:
        fields["request_id"] = request_id
    given = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
    return fields | given


class TextFormatter(logging.Formatter):
    """One line for people: time, level, message, then name=value; a stack trace follows, each line behind a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record; whatever text it carries, nothing but a stack trace begins a new line."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        told = "".join(f" {name}={_shown(value)}" for name, value in fields_of(record).items())
        line = f"{at} {record.levelname:<7} {one_line(record.getMessage())}{told}"
        trace = _trace_of(self, record)
        return line if trace is None else "\n".join([line, *(f"  | {one_line(part)}" for part in trace.splitlines())])


def _trace_of(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    given = vars(record).get(STACK_TRACE)
    if given is not None:
        return str(given)
    return formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] is not None else None


def _shown(value: object) -> str:
    text = str(value)
    is_plain = text and text.isprintable() and " " not in text and '"' not in text
    return text if is_plain else one_line(json.dumps(text, ensure_ascii=False))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record; what JSON cannot hold is written as text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        trace = _trace_of(self, record)
        if trace is not None:
            line["exception"] = trace
        return one_line(json.dumps(line, ensure_ascii=False, default=str))


def configure_logging(level: str = "info", *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send log lines of `level` and above to standard error; called by the command line, never by the library."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ConfigError(f"log level {level!r}: use debug, info, warning or error")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    handler.setLevel(number)
    root = logging.getLogger()
    # What the terminal shows is one thing; what a run logs is kept with its execution from `info` on.
    root.setLevel(min(number, logging.INFO))
    # The engine's own lines about every job are for the terminal alone: made only where they are shown.
    logging.getLogger("windlass.worker").setLevel(number)
    root.addHandler(handler)
    os.environ[LOGS] = f"{level} {'json' if as_json else 'text'}"


def configure_like_parent() -> bool:
    """Log as the worker does that started this process; False when that is not known."""
    level, _, form = os.environ.get(LOGS, "").partition(" ")
    if not form:
        return False
    configure_logging(level, as_json=form == "json")
    return True


class LogThrottle:
    """Limits how often a lasting trouble is logged."""

    def __init__(self, every_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Let each subject be logged at once, and again after `every_s`."""
        self._every_s = every_s
        self._monotonic = monotonic
        self._next: dict[str, float] = {}

    def is_due(self, subject: str = "") -> bool:
        """Whether to log this now, which then counts as done."""
        now = self._monotonic()
        if now < self._next.get(subject, 0.0):
            return False
        self._next[subject] = now + self._every_s
        return True
