"""The sample of `windlass up --demo`: quick, slow, flaky, doomed, and a breaker that trips."""

from __future__ import annotations

from typing import cast

import pytest

from windlass import JobContext, JobState
from windlass.packs import demo
from windlass.testing import enqueued, fresh, run_all


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sample's pauses take no time."""

    async def at_once(_seconds: float) -> None: ...

    monkeypatch.setattr(demo, "asyncio", type("Hurried", (), {"sleep": staticmethod(at_once)}))


async def test_flaky_jobs_work_in_the_end_and_doomed_ones_leave_a_letter() -> None:
    async with fresh(demo.app) as app:
        flaky = await demo.flaky.enqueue(fails=2)
        doomed = await demo.doomed.enqueue(order=30)
        report = await demo.report.enqueue(month=2)
        await run_all(app, retries=True)
        assert await app.wait(flaky) == "worked in try 3"
        assert await app.wait(report) == {"month": 2, "pages": 8}
        assert (await app.get(doomed)).state is JobState.FAILED
        assert len(await app.dead_letters_of(doomed)) == 1
        [run, *_] = await app.executions(doomed.id)
        assert "_address_of" in (run.stack_trace or "")
        assert (await app.items.count("demo-report")).items == 8


async def test_a_partner_that_is_down_trips_its_breaker() -> None:
    async with fresh(demo.app) as app:
        await demo.partner.enqueue_many([{"order": 45, "fails": 1}] * demo.PARTNER.threshold)
        await run_all(app)
        assert [breaker.state for breaker in await app.breakers.list()] == ["open"]


async def test_an_order_grows_into_a_tree() -> None:
    async with fresh(demo.app) as app:
        await demo.order.using(correlation_id="order-1").enqueue(number=1, to="ann@example.org")
        await run_all(app, retries=True)
        traced = await app.trace("order-1")
        assert [(span.job.task, span.depth) for span in traced.spans] == [
            ("demo-order", 0),
            ("demo-mail", 1),
            ("demo-parcel", 1),
            ("demo-mail", 2),
        ]


@pytest.mark.parametrize(
    ("number", "tasks"),
    [
        (1, {"demo-mail"}),
        (2, {"demo-mail", "demo-report", "demo-doomed"}),
        (3, {"demo-mail", "demo-order"}),
        (65, {"demo-mail", "demo-partner"}),
    ],
)
async def test_a_beat_makes_a_few_jobs(number: int, tasks: set[str]) -> None:
    async with fresh(demo.app) as app:
        await demo.beat(cast("JobContext", _Beat(number)))
        made = enqueued(app)
        assert {job.task for job in made} == tasks
        assert len(made) <= 5


class _Beat:
    """As much of a context as a beat looks at."""

    def __init__(self, execution: int) -> None:
        self.execution = execution


def test_every_task_of_the_sample_is_marked() -> None:
    assert all(name.startswith("demo-") for name in demo.app.tasks)
