"""`windlass export` and `windlass import lines`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner, Result

from tests.moving.comparing import rows_of
from tests.moving.conftest import FROM_POSTGRES, FROM_SQLITE, Route
from tests.moving.jobs_app import DEAD, JOBS, make_app
from windlass.cli.main import main
from windlass.core.filter import JobFilter
from windlass.core.page import JobQuery
from windlass.store.doctor import check


def typed(url: str, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [*arguments, "--database", url])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_everything_is_restored_as_it_was(route: Route, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    typed(route.source, "export", "--everything", "--output", str(file))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["tables"]["windlass_jobs"]["rows"] == 2 * JOBS + DEAD
    assert lines[-1] == {"rows": len(lines) - 2}
    told = typed(route.target, "import", "lines", str(file)).output
    assert f"{2 * JOBS + DEAD} of them jobs" in told
    assert "nothing was stored" in told
    typed(route.target, "import", "lines", str(file), "--apply")
    assert rows_of(route.source, route.target) == rows_of(route.target, route.source)
    asyncio.run(_is_sound(route.target))
    assert "is not empty" in typed(route.target, "import", "lines", str(file), "--apply", code=1).stderr


async def _is_sound(url: str) -> None:
    async with make_app(url) as app:
        assert await check(await app.store()) == []
        assert (await app.enqueue("add", {"one": 1, "other": 2})).id == 2 * JOBS + DEAD + 2


@FROM_SQLITE
def test_a_file_that_was_cut_off_is_not_taken_for_whole_and_goes_on_when_it_is(route: Route, tmp_path: Path) -> None:
    file, cut = tmp_path / "all.jsonl", tmp_path / "cut.jsonl"
    typed(route.source, "export", "--everything", "--output", str(file))
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    cut.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    assert "ends in the middle" in typed(route.target, "import", "lines", str(cut), "--apply", code=1).stderr
    assert "has not ended" in typed(route.target, "jobs", code=2).stderr
    typed(route.target, "import", "lines", str(file), "--apply")
    assert rows_of(route.source, route.target) == rows_of(route.target, route.source)


@FROM_POSTGRES
def test_jobs_become_new_jobs_elsewhere(route: Route, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    typed(route.source, "export", "--task", "add", "--state", "scheduled,paused", "--output", str(file))
    with make_app(route.target) as app:
        app.migrate()
        app.enqueue_sync("add", {"one": 0, "other": 0})
    told = typed(route.target, "import", "lines", str(file)).output
    assert f"{JOBS} of task add, which were scheduled" in told
    assert "1 of task add, which were paused" in told
    typed(route.target, "import", "lines", str(file), "--apply")
    again = typed(route.target, "import", "lines", str(file), "--apply", code=3)
    assert again.stderr.count("has this key or name already") == JOBS + 1
    with make_app(route.source) as before, make_app(route.target) as after:
        wanted = JobQuery(filter=JobFilter(search="later-7"))
        [old], [new] = before.list_sync(wanted).jobs, after.list_sync(wanted).jobs
        assert (new.payload, new.run_at, new.unique_key, new.lane) == (old.payload, old.run_at, old.unique_key, old.lane)
        [nightly] = after.list_sync(JobQuery(filter=JobFilter(is_recurring=True))).jobs
        assert (nightly.name, nightly.state) == ("nightly", "paused")


@FROM_SQLITE
def test_what_is_wrong_is_named(route: Route, tmp_path: Path) -> None:
    assert "--everything, or filters" in typed(route.source, "export", code=2).stderr
    file = tmp_path / "bad.jsonl"
    file.write_text('{"some": "thing"}\n')
    assert "is not what `windlass export` writes" in typed(route.source, "import", "lines", str(file), code=2).stderr
    file.write_text('{"windlass_export": 1, "what": "jobs"}\n{"job": {"task": "", "lane": "x"}}\n')
    refused = typed(route.source, "import", "lines", str(file), code=2).stderr
    assert "line 2" in refused
    assert "task" in refused
