from __future__ import annotations

from datetime import date
from unittest.mock import ANY

import pytest
from pydantic import BaseModel

from windlass import InvalidInput, NewJob, Windlass
from windlass.testing import assert_enqueued, assert_not_enqueued, enqueued, run_all


class Order(BaseModel):
    number: int
    due: date


async def test_a_job_is_found_by_its_task_and_some_arguments(app: Windlass) -> None:
    @app.task
    async def email(to: str, template: str = "welcome", tags: tuple[str, ...] = ()) -> None: ...

    first = await email.enqueue(to="ann", tags=("a", "b"))
    await email.enqueue(to="bob", template="bye")
    assert assert_enqueued(app, email).id == first.id
    assert assert_enqueued(app, "email", to="ann").id == first.id
    assert assert_enqueued(app, email, to="ann", template="welcome", tags=("a", "b")).id == first.id
    assert_enqueued(app, email, to=ANY, template="bye")
    assert_not_enqueued(app, email, to="ann", template="bye")
    assert [job.id for job in enqueued(app, email, template="welcome")] == [first.id]
    assert len(enqueued(app)) == 2


async def test_a_job_that_has_run_was_enqueued_all_the_same(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    await email.enqueue(to="ann")
    await run_all(app)
    assert_enqueued(app, email, to="ann")


async def test_values_are_compared_as_the_function_gets_them(app: Windlass) -> None:
    @app.task
    async def remind(on: date, order: Order) -> None: ...

    @app.task(payload=Order)
    async def ship(order: Order) -> None: ...

    order = Order(number=7, due=date(2026, 1, 2))
    await remind.enqueue(on=date(2026, 1, 1), order=order)
    await ship.enqueue(order=order)
    assert_enqueued(app, remind, on=date(2026, 1, 1))
    assert_enqueued(app, remind, on="2026-01-01", order=order)
    assert_enqueued(app, ship, order=order)
    assert_enqueued(app, ship, number=7)
    assert_not_enqueued(app, ship, number=8)


async def test_the_failure_lists_what_there_is_of_the_task(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    await email.enqueue_many([{"to": f"{number}@example.org"} for number in range(30)])
    with pytest.raises(AssertionError) as failed:
        assert_enqueued(app, email, to="ann")
    lines = str(failed.value).splitlines()
    assert lines[0] == "a job email(to='ann') was not enqueued; of this task there are:"
    assert lines[1].startswith("  email(to='0@example.org')  job 1, pending")
    assert lines[-1] == "  … and 10 more"


async def test_the_failure_lists_the_other_jobs_where_there_are_none_of_the_task(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    @app.task
    async def resize(picture: int) -> None: ...

    with pytest.raises(AssertionError, match="there are no jobs at all"):
        assert_enqueued(app, email)
    await resize.enqueue(picture=3)
    with pytest.raises(AssertionError, match=r"there are only:\n  resize\(picture=3\)"):
        assert_enqueued(app, email)


async def test_what_should_not_be_there_is_shown(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    await email.enqueue(to="ann")
    assert_not_enqueued(app, email, to="bob")
    with pytest.raises(AssertionError, match=r"a job email\(to='ann'\) was enqueued:\n  email\(to='ann'\)  job 1, pending"):
        assert_not_enqueued(app, email, to="ann")


async def test_an_argument_that_the_task_does_not_have_is_a_slip(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    with pytest.raises(InvalidInput, match="task 'email' has no such argument; it has to"):
        assert_not_enqueued(app, email, two="ann")


async def test_a_task_without_code_is_known_by_its_payload(app: Windlass) -> None:
    await app.enqueue("scrape", {"url": "http://example.org", "depth": 2}, lane="pull")
    assert_enqueued(app, "scrape", depth=2)
    assert_not_enqueued(app, "scrape", depth=3)


async def test_a_payload_that_does_not_fit_is_found_by_what_it_says(app: Windlass) -> None:
    @app.task
    async def email(to: str) -> None: ...

    await app.enqueue_jobs([NewJob(task="email", payload='{"to":5}')])
    assert_enqueued(app, email, to=5)


async def test_more_jobs_than_a_page_has_are_all_found(app: Windlass) -> None:
    @app.task
    async def email(number: int) -> None: ...

    await email.enqueue_many([{"number": number} for number in range(1100)])
    assert len(enqueued(app, email)) == 1100
    assert_enqueued(app, email, number=1099)
