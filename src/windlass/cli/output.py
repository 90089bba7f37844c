"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import click

from windlass.cli.terminal import is_terminal
from windlass.core.durations import format_duration
from windlass.core.ids import job_uuid
from windlass.core.job import DeadLetter, Job
from windlass.core.job_verbs import Bulk
from windlass.core.one_line import one_line

_WIDEST = 60
_GAP = 2
NOTHING = "-"
"""What stands for no value."""
# A token would let its reader act as the worker that holds the job.
_SECRETS = frozenset({"token", "unique_slot"})


def say(text: str) -> None:
    """Print a line for people."""
    click.echo(f"windlass: {one_line(text)}")


def complain(problem: object) -> None:
    """Print what went wrong on the standard error, whatever text of others it quotes."""
    click.echo(f"windlass: {one_line(str(problem))}", err=True)


def say_json(document: Any) -> None:
    """Print a document for programs."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def say_either(document: Any, text: str, *, as_json: bool) -> None:
    """Print a record, or a document as it is, for programs; or a line for people."""
    if as_json:
        say_json(document if isinstance(document, dict) else plain(document))
    else:
        say(text)


def say_rows(
    noun: str,
    rows: Iterable[Any],
    columns: Sequence[str],
    *,
    as_json: bool,
    fields: Callable[[Any], Any] | None = None,
    **more: Any,
) -> None:
    """Print rows as a document under `noun`, made by `fields`, with what else it has; or some of their attributes as a table."""
    if as_json:
        say_json({noun: [(fields or plain)(one) for one in rows], **more})
    else:
        say_table(({column: getattr(one, column) for column in columns} for one in rows), columns)


def say_bulk(bulk: Bulk, done: str, *, dry_run: bool, as_json: bool) -> None:
    """Print what a bulk came to."""
    if as_json:
        say_json({**bulk._asdict(), "dry_run": dry_run})
    elif dry_run:
        say(f"{bulk.matched} match; nothing was changed")
    else:
        say(f"{bulk.matched} matched: {bulk.changed} {done}, {bulk.refused} refused")


def say_table(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, widest: int | None = _WIDEST, spare: Sequence[str] = ()
) -> None:
    """Print rows under their headings, numbers to the right; at a terminal, in lines that fit it.

    The columns of `spare` are left out there, in that order, where it is too narrow.
    """
    shown = list(rows)
    if is_terminal():
        from windlass.cli.table import draw_table  # noqa: PLC0415 - loads what draws, which scripts do without

        draw_table(shown, columns, spare)
        return
    texts = [
        [column.replace("_", " ") for column in columns],
        *([cell(row.get(one), widest) for one in columns] for row in shown),
    ]
    widths = [max(_width(line[place]) for line in texts) for place in range(len(columns))]
    for line in texts:
        click.echo((" " * _GAP).join(_padded(text, most) for text, most in zip(line, widths, strict=True)).rstrip())


def _width(text: str) -> int:
    """Count the columns a terminal gives a text: two for a wide character, none for one that joins the one before."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _cut(text: str, most: int) -> str:
    if _width(text) <= most:
        return text
    while _width(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def say_fields(record: Mapping[str, Any]) -> None:
    """Print a record, a field a line; empty ones are left out."""
    shown = {name: value for name, value in record.items() if value not in (None, (), [], {})}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = one_line(document_text(value)) if isinstance(value, dict | list) else cell(value, widest=None)
        click.echo(f"{name.replace('_', ' '):<{width}}  {text}")


def document_text(value: Any) -> str:
    """Write a document on one line."""
    return json.dumps(value, ensure_ascii=False)


def cell(value: Any, widest: int | None = _WIDEST) -> str:
    """Write a value as a table shows it: on one line, and not too long."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        case timedelta():
            return format_duration(value)
    text = one_line(str(value))
    return text if widest is None else _cut(text, widest)


def _padded(text: str, width: int) -> str:
    space = " " * (width - _width(text))
    return space + text if text.isdigit() else text + space


def plain(value: Any) -> Any:
    """Turn a record into types of JSON."""
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
    return dict(_field(name, value) for name, value in kept.items())


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith("_json") or name == "cadence":
        return name.removesuffix("_json"), _document(value)
    return name, plain(value)


def _document(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else plain(value)
    except ValueError:
        return value


def job_fields(job: Job) -> dict[str, Any]:
    """Return a job's fields for JSON; without a correlation id it shows its own UUID, as everywhere."""
    return {**plain(job), "correlation_id": job.correlation_id or str(job_uuid(job.id)), "is_enabled": job.is_enabled}


def letter_fields(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter's fields for JSON, with the job as it died."""
    return {**plain(letter), "original_job": letter.original_job}
