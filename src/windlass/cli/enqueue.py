"""`windlass enqueue`."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from windlass import packs
from windlass.app import Windlass
from windlass.cli import completing, options
from windlass.cli.output import say_either
from windlass.cli.session import operating, person
from windlass.cli.target import load_app
from windlass.core.job import OnConflict, UniqueScope
from windlass.core.payload import decode_request
from windlass.errors import InvalidPayload


@click.command()
@click.argument("task", shell_complete=completing.tasks)
@click.option("--payload", metavar="JSON", help="The arguments as a JSON object; - reads it from the standard input.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One argument: JSON, or else text; again for more.",
    shell_complete=completing.arguments,
)
@click.option("--lane", help="Default: the task's.", shell_complete=completing.lanes)
@click.option("--priority", type=int, help="Higher is sooner.")
@click.option("--delay", metavar="DURATION", help="As in 90s or 1h30m.")
@click.option("--run-at", metavar="TIME", help="As in 2026-01-15T10:30Z.")
@click.option("--max-attempts", type=int, help="How many runs at most.")
@click.option("--timeout", metavar="DURATION", help="How long a run may take.")
@click.option("--unique-key", help="A job of the task with the same key is answered in place of a new one.")
@click.option("--unique-scope", type=click.Choice([one.value for one in UniqueScope]), help="How long the key is held.")
@click.option("--on-conflict", type=click.Choice([one.value for one in OnConflict]), help="What to do when it is held.")
@click.option("--subject", help="What the job is about.")
@click.option("--correlation-id", help="What it belongs to.")
@click.option("--app", "target", metavar="MODULE:APP", help="Check the arguments by the code of an application.")
@options.as_json
@options.database
def enqueue(
    task: str,
    *,
    payload: str | None,
    arguments: tuple[str, ...],
    run_at: str | None,
    target: str | None,
    as_json: bool,
    database: str | None,
    **given: Any,
) -> None:
    """Enqueue a job of TASK and print its number."""
    document = {**({} if payload is None else read_object(payload, "payload")), **dict(_read_argument(one) for one in arguments)}
    chosen = {name: value for name, value in given.items() if value is not None}
    if run_at is not None:
        chosen["run_at"] = options.read_time("run_at", run_at)
    app = Windlass(database) if target is None else load_app(target)
    packs.install(app, app.settings.packs or ())
    # An application may begin with its first job; without one, a file that is not there is a typing error.
    with operating(database, app, makes_file=target is not None) as operator:
        try:
            enqueued = operator.enqueue_sync(task, document, created_by=person(), **chosen)
        except InvalidPayload as error:
            raise _with_hint(error, arguments) from None
    say_either(
        {"id": enqueued.id, "is_duplicate": enqueued.is_duplicate},
        f"job {enqueued.id} has this key already" if enqueued.is_duplicate else f"job {enqueued.id} is enqueued",
        as_json=as_json,
    )


def read_object(text: str, field: str) -> dict[str, Any]:
    """Read a JSON object from an argument, or from the standard input where that is `-`."""
    raw = sys.stdin.buffer.read() if text == "-" else text.encode(errors="surrogateescape")
    found = decode_request(raw, field=field)
    if not isinstance(found, dict):
        raise InvalidPayload(field, found, "must be a JSON object")
    return found


def _with_hint(error: InvalidPayload, arguments: tuple[str, ...]) -> InvalidPayload:
    """Add how to type a text that looks like JSON, where an argument should have been one."""
    given = dict(_read_argument(one) for one in arguments)
    if error.field not in given or isinstance(given[error.field], str) or "str" not in error.reason:
        return error
    hint = f"; --arg reads JSON where it can, so write --arg '{error.field}=\"…\"' for a text"
    return InvalidPayload(error.field, error.value, f"{error.reason}{hint}")


def _read_argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidPayload("arg", text, "must be name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
