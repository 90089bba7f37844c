"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import click

from windlass.core.durations import format_duration
from windlass.core.job import Job

_WIDEST = 60
_NOTHING = "-"
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "�")
# Columns that hold JSON text.
_DOCUMENTS = frozenset({"payload", "metadata", "item_key", "cadence", "original_job", "details", "options", "pools", "result"})
# A token would let its reader act as the worker that holds the job.
_SECRETS = frozenset({"token", "unique_slot"})


def say(text: str) -> None:
    """Print a line for people."""
    click.echo(f"windlass: {text}")


def say_json(document: Any) -> None:
    """Print a document for programs."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def say_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, widest: int | None = _WIDEST) -> None:
    """Print rows under their headings; numbers to the right."""
    texts = [[cell(row.get(column), widest) for column in columns] for row in rows]
    widths = [max(len(line[place]) for line in [list(columns), *texts]) for place in range(len(columns))]
    for line in [[column.replace("_", " ") for column in columns], *texts]:
        click.echo("  ".join(_padded(text, width) for text, width in zip(line, widths, strict=True)).rstrip())


def say_fields(record: Mapping[str, Any]) -> None:
    """Print a record, a field a line; empty ones are left out."""
    shown = {name: value for name, value in record.items() if value not in (None, (), [], {})}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else cell(value, widest=None)
        click.echo(f"{name.replace('_', ' '):<{width}}  {text}")


def cell(value: Any, widest: int | None = _WIDEST) -> str:
    """Write a value as a table shows it: on one line, and not too long."""
    match value:
        case None:
            return _NOTHING
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        case timedelta():
            return format_duration(value)
    # Somebody else's text must not move the cursor of who looks at it.
    text = str(value).translate(_CONTROL)
    return text if widest is None or len(text) <= widest else f"{text[: widest - 1]}…"


def _padded(text: str, width: int) -> str:
    return text.rjust(width) if text.isdigit() else text.ljust(width)


def plain(value: Any) -> Any:
    """Turn a record into what JSON knows."""
    record = _record(value)
    if record is not None:
        return _fields(record)
    if isinstance(value, Mapping):
        return {str(_scalar(name)): plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return value


def _record(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields: Mapping[str, Any] = value._asdict()
        return fields
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in record.items() if name not in _SECRETS}
    return {name: _document(value) if name in _DOCUMENTS else plain(value) for name, value in kept.items()}


def _document(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else plain(value)
    except ValueError:
        return value


def job_fields(job: Job) -> dict[str, Any]:
    """Give a job's fields for JSON."""
    return {**plain(job), "is_enabled": job.is_enabled}
