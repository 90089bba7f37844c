"""What public records show of JSON documents: values, whoever reads them, with the stored text beside them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.web.serving import listening
from windlass import InvalidPayload, JobContext, Windlass
from windlass.remote import AsyncClient, Client
from windlass.testing import run_all

TOKEN = "static-admin-token"
# Numbers that a reader of another kind would round, and text that an ASCII encoder would write otherwise.
VALUE: dict[str, Any] = {"big": 2**64 - 1, "low": -(2**63), "whole": 1.0, "small": 5e-324, "third": 1 / 3, "ü": ["é", None, True]}
TEXT = (
    '{"big":18446744073709551615,"low":-9223372036854775808,"whole":1.0,"small":5e-324,"third":0.3333333333333333,'
    '"ü":["é",null,true]}'
)


async def ran(app: Windlass) -> int:
    """Run a job that takes, keeps and returns the value, and return its number."""

    @app.task
    async def echo(ctx: JobContext, value: dict[str, Any]) -> dict[str, Any]:
        ctx.metadata = value
        return value

    job = await echo.using(metadata=VALUE, item_key=["ü", "b"]).enqueue(VALUE)
    [done] = await run_all(app)
    assert (done.arguments, done.result) == ({"value": VALUE}, VALUE)
    number: int = job.id
    return number


async def test_a_job_and_its_runs_have_values_and_the_exact_text(app: Windlass) -> None:
    number = await ran(app)
    job = await app.get(number)
    # `repr` tells 1.0 from 1 and shows every digit.
    assert repr((job.payload, job.metadata, job.item_key)) == repr(({"value": VALUE}, VALUE, ["ü", "b"]))
    assert (job.payload_json, job.metadata_json, job.item_key_json) == (f'{{"value":{TEXT}}}', TEXT, '["ü","b"]')
    [run] = await app.executions(number)
    assert repr((run.result, run.metadata)) == repr((VALUE, VALUE))
    assert (run.result_json, run.metadata_json) == (TEXT, TEXT)


async def test_the_clients_over_http_show_the_same_values(app: Windlass, url: str) -> None:
    number = await ran(app)
    job, [run] = await app.get(number), await app.executions(number)
    wanted = repr((job.payload, job.metadata, job.item_key, run.result, run.metadata))

    def read(address: str) -> str:
        with Client(address, TOKEN) as client:
            job, [run] = client.get(number), client.executions(number)
            return repr((job.payload, job.metadata, job.item_key, run.result, run.metadata))

    with listening(Windlass(url, admin_token=TOKEN)) as port:
        address = f"http://127.0.0.1:{port}"
        assert await asyncio.to_thread(read, address) == wanted
        async with AsyncClient(address, TOKEN) as client:
            job_there, runs = await client.get(number), [run async for run in client.executions(number)]
            assert repr((job_there.payload, job_there.metadata, job_there.item_key, runs[0].result, runs[0].metadata)) == wanted


async def test_what_a_reader_does_to_a_value_changes_nothing_else(app: Windlass) -> None:
    job = await app.get(await ran(app))
    [run] = await app.executions(job.id)
    same, same_run = replace(job), replace(run)
    job.payload["value"]["big"] = 0
    job.metadata.clear()
    run.result["ü"].append("more")
    assert (job.payload, job.metadata, run.result) == ({"value": VALUE}, VALUE, VALUE)
    assert (job, run) == (same, same_run)


async def test_nothing_kept_is_an_empty_object_and_nothing_returned_is_none(app: Windlass) -> None:
    @app.task
    def quiet() -> None: ...

    number = (await quiet.enqueue()).id
    await run_all(app)
    job, [run] = await app.get(number), await app.executions(number)
    assert (job.payload, job.metadata, job.item_key, run.result, run.metadata) == ({}, {}, None, None, {})
    assert (job.payload_json, job.metadata_json, run.result_json, run.metadata_json) == ("{}", None, None, None)


async def test_a_dead_letter_has_the_job_and_its_details_as_values(app: Windlass) -> None:
    @app.task(max_attempts=1)
    def fail(value: dict[str, Any]) -> None:
        raise RuntimeError(f"broken with {len(value)} fields")

    await fail.enqueue(VALUE)
    await run_all(app, raise_errors=False)
    [letter] = (await app.letters.list()).letters
    edited = await app.letters.edit(letter.id, {"value": {"big": 2**64 - 1}}, by="ann")
    noted = await app.letters.add_note(letter.id, "looked at", by="ann")
    assert repr(letter.original_job["payload"]) == repr({"value": VALUE})
    assert letter.details is not None
    assert (letter.details["type"], letter.edited_payload, letter.notes) == ("RuntimeError", None, ())
    assert (edited.edited_payload, edited.edited_payload_json) == (
        {"value": {"big": 2**64 - 1}},
        '{"value":{"big":18446744073709551615}}',
    )
    assert [(note.by, note.text) for note in noted.notes] == [("ann", "looked at")]


async def test_text_that_no_codec_wrote_is_refused_when_it_is_read_and_not_before(app: Windlass) -> None:
    job = await app.get(await ran(app))
    [run] = await app.executions(job.id)
    broken, broken_run = replace(job, payload_json='{"a":NaN}'), replace(run, result_json="[1,")
    assert "NaN" in repr(broken)
    with pytest.raises(InvalidPayload, match=r"payload.*NaN is not a number in JSON"):
        _ = broken.payload
    with pytest.raises(InvalidPayload, match=r"result.*is not strict JSON"):
        _ = broken_run.result
