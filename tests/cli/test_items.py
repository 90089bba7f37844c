"""Items on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.job import Lease, NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def find(app: Windlass, *items: dict[str, Any]) -> int:
    """Let a job find items; gives its number."""

    async def work() -> int:
        store = await app.blocking_store()
        [job] = await store.enqueue([NewJob(task="leads", lane="own", item_key="[]")])
        [held] = await store.claim(await store.slices(), 1, Lease(job.id * 7, "finder", app.settings.lease))
        await store.items.add(held.id, held.token, items)
        return job.id

    return run(work())


@BOTH
def test_items_are_listed_and_exported(windlass: Command, ask: Any, app: Windlass, tmp_path: Path) -> None:
    items = [{"name": f"=n{place}", "place": place} for place in range(3)]
    number = find(app, *items)
    listed = ask("items", "list", str(number), "--limit", "2")
    assert ([one["data"] for one in listed["items"]], listed["total"]) == (items[:2], 3)
    assert "=n2" in windlass("items", "--collection", "leads").stdout
    lines = windlass("items", "export", "--collection", "leads")
    assert [json.loads(line) for line in lines.stdout.splitlines()] == items
    assert "3 items exported; --after 3 leaves them out" in lines.stderr
    out = tmp_path / "items.csv"
    windlass("items", "export", str(number), "--format", "csv", "--after", "1", "--output", str(out))
    with out.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["name", "place"], ["'=n1", "1"], ["'=n2", "2"]]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".items")] == []


def test_what_cannot_be_exported_leaves_no_file(windlass: Command, tmp_path: Path) -> None:
    out = tmp_path / "items.jsonl"
    assert "job 77 not found" in windlass("items", "export", "77", "--output", str(out), code=1).stderr
    assert "name a job" in windlass("items", "export", "--output", str(out), code=2).stderr
    assert "name a job" in windlass("items", "list", "1", "--collection", "a", code=2).stderr
    windlass("items", "export", "--collection", "a", "--output", str(tmp_path / "no" / "where"), code=2)
    assert not out.exists()
