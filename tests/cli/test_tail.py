"""`windlass tail`: changes of jobs as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.at_terminal import at_terminal
from tests.cli.running import interrupt, running
from windlass import Retry, Windlass
from windlass.cli.job_events import JobEvents
from windlass.core.blocking import run
from windlass.core.filter import JobFilter
from windlass.core.job import JobState, NewJob
from windlass.testing import run_all

pytestmark = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def shop(url: str) -> Iterator[Windlass]:
    with Windlass(url) as made:

        @made.task
        def work() -> None: ...

        @made.task(max_attempts=2)
        def fail() -> None:
            raise Retry("not yet", after="1h")

        yield made


def events_of(shop: Windlass, **meant: list[str]) -> JobEvents:
    return JobEvents(run(shop.blocking_store()), **meant)


def seen(events: JobEvents) -> list[tuple[int, str | None, str]]:
    return [(one.job.id, one.was, one.job.state.value) for one in events.look()]


def test_each_change_is_found_once(shop: Windlass) -> None:
    shop.enqueue_sync("work")
    events = events_of(shop)
    assert seen(events) == []
    shop.override_status_sync(1, JobState.RUNNING, by="ann")
    assert seen(events) == [(1, "pending", "running")]
    shop.fail_sync(1, "broken")
    shop.enqueue_sync("work", delay="1h")
    assert sorted(seen(events)) == [(1, "running", "scheduled"), (2, None, "scheduled")]
    shop.pause_sync(2)
    shop.run_now_sync(1)
    assert sorted(seen(events)) == [(1, "scheduled", "pending"), (2, "scheduled", "paused")]
    asyncio.run(run_all(shop))
    shop.cancel_sync(2)
    assert sorted(seen(events)) == [(1, "pending", "completed"), (2, "paused", "cancelled")]
    assert seen(events) == []


def test_a_run_that_is_over_between_two_looks_is_found_by_its_end(shop: Windlass) -> None:
    events = events_of(shop)
    shop.enqueue_sync("work")
    shop.enqueue_sync("fail")
    asyncio.run(run_all(shop))
    assert sorted(seen(events)) == [(1, None, "completed"), (2, None, "scheduled")]


def test_jobs_of_before_are_no_events_and_old_ones_are_when_they_move(shop: Windlass) -> None:
    shop.enqueue_jobs_sync([NewJob(task="work") for _ in range(400)])
    events = events_of(shop)
    assert seen(events) == []
    shop.cancel_sync(3)
    shop.override_status_sync(4, JobState.RUNNING, by="ann")
    assert sorted((number, state) for number, _, state in seen(events)) == [(3, "cancelled"), (4, "running")]


def test_a_burst_is_read_as_far_as_a_look_goes_and_reported(shop: Windlass) -> None:
    events = events_of(shop)
    shop.enqueue_jobs_sync([NewJob(task="work") for _ in range(900)])
    assert len(events.look()) == 900
    assert not events.is_cut
    shop.bulk_sync("cancel", JobFilter())
    found = events.look()
    assert {one.job.state for one in found} == {JobState.CANCELLED}
    assert len(found) == 900
    shop.enqueue_jobs_sync([NewJob(task="other") for _ in range(1500)])
    assert len(events.look()) >= 1000
    assert events.is_cut


def test_filters_mean_tasks_and_lanes(shop: Windlass) -> None:
    by_task, by_lane = events_of(shop, tasks=["fail"]), events_of(shop, lanes=["slow"])
    shop.enqueue_jobs_sync([NewJob(task="work", lane="slow"), NewJob(task="fail")])
    assert (seen(by_task), seen(by_lane)) == ([(2, None, "pending")], [(1, None, "pending")])
    for number in (1, 2):
        shop.cancel_sync(number)
    assert (seen(by_task), seen(by_lane)) == ([(2, "pending", "cancelled")], [(1, "pending", "cancelled")])


def test_the_command_prints_an_object_a_line_until_ctrl_c(url: str, shop: Windlass) -> None:
    with running(url, "tail", "--json", "--task", "fail") as process:
        assert process.stdout is not None
        found = _first(process, shop)
        rest, _, code = interrupt(process)
    assert code == 0
    assert (found["task"], found["state"], found["job_id"]) == ("fail", "pending", 1)
    assert found["at"].endswith("+00:00")
    assert all(json.loads(line)["task"] == "fail" for line in rest.splitlines())


def _first(process: Any, shop: Windlass) -> Any:
    """Enqueue until the command prints a line: it reports only what happens after it has looked for the first time."""
    from select import select  # noqa: PLC0415

    for _ in range(60):
        shop.enqueue_jobs_sync([NewJob(task="fail"), NewJob(task="work")])
        if select([process.stdout], [], [], 1)[0]:
            line = json.loads(process.stdout.readline())
            return line | {"job_id": 1 if line["job_id"] % 2 else 0}
    raise AssertionError("tail printed nothing")


def test_a_terminal_gets_coloured_lines_that_fit(url: str, shop: Windlass) -> None:
    from threading import Event, Thread  # noqa: PLC0415

    stop = Event()

    def enqueue() -> None:
        while not stop.wait(0.2):
            [made] = shop.enqueue_jobs_sync([NewJob(task="work" * 30)])
            shop.bury_sync(made, "x" * 300)

    thread = Thread(target=enqueue)
    thread.start()
    shown = at_terminal(80, url, "tail", until=lambda raw: raw.count("\n") >= 2)
    stop.set()
    thread.join()
    assert shown.code == 0
    assert shown.widest <= 80
    assert "failed" in shown.text or "…" in shown.text
