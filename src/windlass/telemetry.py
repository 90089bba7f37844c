"""Log lines that carry the job they are about: text for people, JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from windlass.core.current import current_job, current_request
from windlass.errors import ConfigError

_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Gather what a line says beside its message: the running job or request, and what the caller gave as `extra`."""
    fields: dict[str, Any] = {}
    job = current_job.get()
    if job is not None:
        fields = {"job_id": job.id, "task": job.task, "attempt": job.attempt}
        if job.correlation_id is not None:
            fields["correlation_id"] = job.correlation_id
    request_id = current_request.get()
    if request_id is not None:
        fields["request_id"] = request_id
    given = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
    return fields | given


class TextFormatter(logging.Formatter):
    """One line for people: time, level, message, then name=value."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name logging calls
        """Write the line without its exception, which logging adds."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        told = "".join(f" {name}={_shown(value)}" for name, value in fields_of(record).items())
        return f"{at} {record.levelname:<7} {record.message}{told}"


def _shown(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and " " not in text and '"' not in text else json.dumps(text, ensure_ascii=False)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record; what JSON has no word for is written as text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


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
    # The engine's own words about every job are for the terminal alone: made only where they are shown.
    logging.getLogger("windlass.worker").setLevel(number)
    root.addHandler(handler)
