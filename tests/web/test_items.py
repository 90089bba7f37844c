"""Items over HTTP: pages, counts, and exports that never hold everything."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.job import Lease, NewJob, Slices
from windlass.core.pool import PULL_LANE

ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def found(web: Served, *items: dict[str, Any], collection: str | None = None, item_key: str = "[]") -> int:
    """Let a job find items; gives its number."""
    store = await web.app.store()
    [job] = await store.enqueue([NewJob(task="leads", lane=PULL_LANE, collection=collection, item_key=item_key)])
    slices = await store.slices()
    mine = Slices(slices.version, tuple(part for part in slices.open if part.lane == PULL_LANE))
    held = await store.pull(mine, Lease(job.id * 7, "finder", web.app.settings.lease))
    assert held is not None
    for start in range(0, len(items), 500):
        await store.items.add(held.id, held.token, items[start : start + 500])
    return job.id


async def test_a_jobs_items_come_in_pages_with_their_count(web: Served) -> None:
    number = await found(web, *({"n": place} for place in range(7)))
    await found(web, {"n": 100}, collection="others")
    first = (await web.ask("GET", f"/api/v1/jobs/{number}/items?limit=5", Role.VIEWER)).json()
    assert [item["data"]["n"] for item in first["items"]] == [0, 1, 2, 3, 4]
    assert (first["total"], first["is_total_exact"]) == (7, True)
    rest = (await web.ask("GET", f"/api/v1/jobs/{number}/items?limit=5&after={first['next']}", Role.VIEWER)).json()
    assert ([item["data"]["n"] for item in rest["items"]], rest["next"]) == ([5, 6], None)
    one = rest["items"][0]
    assert (one["collection"], one["job_id"]) == ("leads", (await web.ask("GET", f"/api/v1/jobs/{number}")).json()["id"])


async def test_a_collection_holds_what_several_jobs_found(web: Served) -> None:
    await found(web, {"n": 1}, {"n": 2}, collection="both")
    second = await found(web, {"n": 2}, {"n": 3}, collection="both")
    page = (await web.ask("GET", "/api/v1/items?collection=both")).json()
    assert ([item["data"]["n"] for item in page["items"]], page["total"]) == ([1, 2, 3], 3)
    mine = (await web.ask("GET", f"/api/v1/jobs/{second}/items")).json()
    assert ([item["data"]["n"] for item in mine["items"]], mine["total"]) == ([3], 1)
    assert (await web.ask("GET", "/api/v1/items?collection=none")).json()["items"] == []


@ON_SQLITE
async def test_unknown_jobs_and_bad_questions_are_refused(web: Served) -> None:
    for path, status in {
        "/api/v1/jobs/987654321/items": 404,
        "/api/v1/jobs/nonsense/items": 404,
        "/api/v1/jobs/987654321/items/export": 404,
        "/api/v1/items": 400,
        "/api/v1/items?collection=a&after=-1": 400,
        "/api/v1/items?collection=a&limit=0": 400,
        "/api/v1/items/export?collection=a&format=xml": 400,
    }.items():
        assert (await web.ask("GET", path)).status_code == status, path


async def test_lines_are_the_items_as_they_came(web: Served) -> None:
    items: list[dict[str, Any]] = [{"z": place, "a": [1.5, {"deep": None}], "ü": "one\ntwo"} for place in range(250)]
    number = await found(web, *items)
    answer = await web.ask("GET", f"/api/v1/jobs/{number}/items/export", Role.PRODUCER)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == 'attachment; filename="items.jsonl"'
    assert [json.loads(line) for line in answer.text.splitlines()] == items
    head = await web.ask("HEAD", f"/api/v1/jobs/{number}/items/export")
    assert (head.status_code, head.content) == (200, b"")


async def test_a_table_has_a_column_for_every_field_and_runs_nothing(web: Served) -> None:
    await found(
        web,
        {"name": "=HYPERLINK(1)", "phone": "+49 30 1234"},
        {"phone": "-1+1", "more": {"a": [1]}, "yes": True, "n": 1.5},
        {"name": 'say "hi",\nnow', "@sum": "@SUM(A1)", "n": None, "tab": "\t=1"},
        collection="table",
    )
    answer = await web.ask("GET", "/api/v1/items/export?collection=table&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert rows == [
        ["name", "phone", "more", "yes", "n", "'@sum", "tab"],
        ["'=HYPERLINK(1)", "+49 30 1234", "", "", "", "", ""],
        ["", "-1+1", '{"a": [1]}', "true", "1.5", "", ""],
        ['say "hi",\nnow', "", "", "", "", "'@SUM(A1)", "'\t=1"],
    ]


@ON_SQLITE
async def test_a_table_of_nothing_is_empty_and_one_too_wide_is_refused(web: Served) -> None:
    answer = await web.ask("GET", "/api/v1/items/export?collection=none&format=csv")
    assert (answer.status_code, answer.text) == (200, "")
    await found(web, *({f"field {place}": place} for place in range(1001)), collection="wide")
    refused = await web.ask("GET", "/api/v1/items/export?collection=wide&format=csv")
    assert (refused.status_code, "export them as jsonl" in refused.json()["error"]) == (400, True)


@ON_SQLITE
async def test_secrets_are_hidden_from_viewers_in_pages_and_exports(web: Served) -> None:
    await found(web, {"user": "ann", "password": "hunter2"}, collection="secrets", item_key='["password"]')
    for path in (
        "/api/v1/items?collection=secrets",
        *(f"/api/v1/items/export?collection=secrets&format={f}" for f in ("jsonl", "csv")),
    ):
        assert "hunter2" not in (await web.ask("GET", path, Role.VIEWER)).text
        assert "hunter2" in (await web.ask("GET", path, Role.PRODUCER)).text
