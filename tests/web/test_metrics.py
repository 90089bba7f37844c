"""Metrics over HTTP: the summary, the series and what Prometheus reads, all of them the same numbers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric

from tests.support.prometheus import needs_promtool, promtool, read_openmetrics, read_text, sample
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.job import JobState, NewJob
from windlass.prometheus import MOST_TASKS
from windlass.remote import AsyncClient

on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
"""Where the store's own contract has shown the rest on every database."""
OPEN = "application/openmetrics-text; version=1.0.0"
SCRAPE_TOKEN = "scrape-me-if-you-can"


@pytest.fixture
async def worked(url: str) -> Any:
    """Give a server whose queue has runs of every kind behind it."""
    app = Windlass(url, metrics_token=SCRAPE_TOKEN, retry_base="1ms", retry_cap="1ms", retry_jitter=0)

    @app.task(lane="fast")
    async def good() -> str:
        return "fine"

    @app.task(lane="slow", max_attempts=2)
    async def bad() -> None:
        raise RuntimeError("no")

    async with served(app) as web, app.working():
        jobs = [await good.enqueue() for _ in range(5)]
        failed = await bad.enqueue()
        for job in jobs:
            await app.wait(job, timeout=30)
        with pytest.raises(Exception, match="no"):
            await app.wait(failed, timeout=30)
        await good.using(delay="1h").enqueue()
        yield web


async def scraped(web: Served, accept: str = OPEN, **options: Any) -> str:
    answer = await web.ask("GET", "/metrics", options.pop("role", Role.VIEWER), headers={"accept": accept, **options})
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_every_face_has_the_same_numbers(worked: Served) -> None:
    summary = (await worked.ask("GET", "/api/v1/metrics/summary", Role.VIEWER)).json()
    queue = (await worked.ask("GET", "/api/v1/queue/stats", Role.VIEWER)).json()
    scheduler = (await worked.ask("GET", "/api/v1/scheduler/metrics", Role.VIEWER)).json()
    series = (await worked.ask("GET", "/api/v1/metrics", Role.VIEWER)).json()
    found = read_openmetrics(await scraped(worked))
    assert summary["total"]["jobs"] == scheduler["jobs"]
    assert (queue["pending"], queue["processing"]) == (summary["total"]["jobs"]["pending"], summary["total"]["jobs"]["running"])
    jobs = {state: sum(one.value for one in _of(found, "windlass_jobs") if one.labels["state"] == state) for state in JobState}
    assert jobs == summary["total"]["jobs"] == dict.fromkeys(JobState, 0) | {"completed": 5, "failed": 1, "scheduled": 1}
    assert sum(one.value for one in _of(found, "windlass_runs_total")) == scheduler["executions"]["total"] == 7
    assert sum(point["completed"] for point in series["points"]) == 5
    assert sum(point["failed"] for point in series["points"]) == 2
    assert sample(found, "windlass_run_seconds_count", task="good") == 5
    assert summary["tasks"]["bad"]["error_rate"] == 1.0
    assert summary["tasks"]["bad"]["retry_success_rate"] == 0.0
    assert summary["lanes"]["fast"]["run_ms"]["p99"] is not None
    assert [(one["lane"], one["slots"], one["busy"]) for one in summary["pools"]] == [("*", 5, 0), ("fast", 3, 0)]
    assert sample(found, "windlass_pool_slots", lane="fast", state="idle") == 3
    assert (sample(found, "windlass_workers"), summary["workers"]) == (1, 1)
    assert sample(found, "windlass_alerts") == summary["alerts"] == 0
    assert summary["since"] < summary["at"]
    assert "from" in series


def _of(found: list[Metric], name: str) -> Iterator[Any]:
    return (one for family in found for one in family.samples if one.name == name)


async def test_both_formats_are_read_by_the_parsers_of_others(worked: Served) -> None:
    plain = await scraped(worked, "text/plain")
    opened = await scraped(worked)
    assert opened.endswith("# EOF\n")
    assert "# EOF" not in plain
    names = {family.name.removesuffix("_total") for family in read_text(plain)}
    assert names == {family.name for family in read_openmetrics(opened)}
    [histogram] = [family for family in read_openmetrics(opened) if family.name == "windlass_wait_seconds"]
    counted = [one.value for one in histogram.samples if one.name.endswith("_bucket") and one.labels["task"] == "good"]
    assert counted == sorted(counted)
    assert counted[-1] == 5
    assert sample(read_openmetrics(opened), "windlass_series_dropped") == 0
    assert 0 < sample(read_openmetrics(opened), "windlass_store_round_trip_seconds") < 5


@needs_promtool
async def test_promtool_takes_a_real_scrape(worked: Served) -> None:
    promtool("check", "metrics", text=await scraped(worked, "text/plain"))


@on_one
async def test_the_page_explains_every_metric_and_every_field(worked: Served) -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    shown = {name.removesuffix("_total") for name in re.findall(r"^\| `(windlass_\w+)", page, re.MULTILINE)}
    assert shown == {family.name for family in read_openmetrics(await scraped(worked))}
    summary = (await worked.ask("GET", "/api/v1/metrics/summary", Role.VIEWER)).json()
    [point, *_] = (await worked.ask("GET", "/api/v1/metrics", Role.VIEWER)).json()["points"]
    for field in {*summary, *summary["total"], *point}:
        assert f"`{field}`" in page, field


@on_one
async def test_the_scrape_token_reads_metrics_and_nothing_else(worked: Served) -> None:
    bearer = {"authorization": f"Bearer {SCRAPE_TOKEN}"}
    assert (await worked.ask("GET", "/metrics", None, headers=bearer)).status_code == 200
    for path in ("/api/v1/metrics/summary", "/api/v1/metrics", "/api/v1/jobs", "/api/v1/session"):
        assert (await worked.ask("GET", path, None, headers=bearer)).status_code == 403, path
    form = {"content": f"token={SCRAPE_TOKEN}", "headers": {"content-type": "application/x-www-form-urlencoded"}}
    assert (await worked.ask("POST", "/login", None, **form)).status_code != 303
    assert (await worked.ask("GET", "/metrics", None)).status_code == 401
    wrong = {"authorization": f"Bearer {SCRAPE_TOKEN}x"}
    assert (await worked.ask("GET", "/metrics", None, headers=wrong)).status_code == 401
    assert (await worked.ask("GET", "/metrics", Role.WORKER)).status_code == 403


@on_one
async def test_a_short_scrape_token_is_refused(url: str) -> None:
    with pytest.raises(Exception, match=r"metrics_token: must have at least 16 characters"):
        _ = Windlass(url, metrics_token="short").settings


@on_one
async def test_labels_are_bounded_and_what_is_left_out_is_counted(web: Served) -> None:
    store = await web.app.store()
    await store.enqueue([NewJob(task=f"task-{number:04}", lane="pull") for number in range(MOST_TASKS + 7)])
    evil = 'a"b\\c\n{}=,#'
    await store.enqueue([NewJob(task="task-0000", lane=evil)])
    found = read_openmetrics(await scraped(web))
    tasks = {one.labels["task"] for one in _of(found, "windlass_jobs")}
    assert len(tasks) == MOST_TASKS
    assert sample(found, "windlass_series_dropped") == 7 * len(JobState)
    assert sample(found, "windlass_jobs", task="task-0000", lane=evil, state="pending") == 1


@on_one
async def test_bad_questions_name_the_field_and_the_remedy(web: Served) -> None:
    for query, text in (
        ("step=90s", "step: must be whole minutes"),
        ("step=odd", "step: "),
        ("step=30s", "step: must be a duration of 1m"),
        ("from=yesterday", "from: must be a time such as"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from: must be before to"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-09T00:00:00Z", "from: must be at most 7 days before to"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z", "step: makes more than 1000 points; use at least 3m"),
        ("to=2026-01-01T00:00:00", "to: "),
        ("task=", "task: "),
        ("lane=", "lane: "),
        ("odd=1", "is not a parameter of this route; it has from, lane, step, task, to"),
    ):
        answer = await web.ask("GET", f"/api/v1/metrics?{query}")
        assert (answer.status_code, text in answer.json()["error"]) == (400, True), (query, answer.text)
    assert (await web.ask("GET", "/api/v1/metrics?from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z&step=3m")).status_code == 200


async def test_the_first_page_adds_up_while_jobs_come_and_go(worked: Served) -> None:
    """Its tiles, its tables and its list are of one moment."""
    is_over = False

    async def come() -> None:
        while not is_over:
            await worked.app.enqueue("good")

    async def look() -> None:
        nonlocal is_over
        for _ in range(20):
            worked.server.snapshots._seen = None
            seen = await worked.server.snapshots.now()
            in_all = sum(one.jobs for one in seen.counts)
            assert in_all == seen.total == sum(sum(lane.counts.values()) for lane in seen.lanes)
            shown = {job.id: job.state for job in seen.jobs}
            assert len(shown) <= in_all
            running = seen.count(JobState.RUNNING)
            assert sum(state is JobState.RUNNING for state in shown.values()) <= running
        is_over = True

    await asyncio.gather(come(), look())


@on_one
async def test_the_http_clients_read_them(worked: Served) -> None:
    async with AsyncClient("http://127.0.0.1", worked.tokens[Role.VIEWER], transport=worked.client._transport) as client:
        summary = await client.insights.summary()
        assert summary.tasks["good"].jobs[JobState.COMPLETED] == 5
        assert summary.total.run_ms.p50 is not None
        series = await client.insights.series(lane="fast", step="5m")
        assert sum(point.completed for point in series.points) == 5
        assert (series.lane, series.step_seconds) == ("fast", 300)
