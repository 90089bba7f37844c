"""`windlass job` and `windlass dead show`: what people read of a job, run by a worker."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Command
from windlass import JobCancelled, JobContext, Retry, Windlass
from windlass.testing import run_all

pytestmark = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def shop(url: str) -> Iterator[Windlass]:
    """Give an application with a task that works and one that does not."""
    with Windlass(url) as made:

        @made.task
        def count(upto: int) -> dict[str, int]:
            logging.getLogger("shop").warning("counted to %d", upto)
            return {"sum": upto}

        @made.task(max_attempts=1)
        def look_up(key: str) -> str:
            return {"a": "b"}[key]

        yield made


def work(shop: Windlass) -> None:
    asyncio.run(run_all(shop))


def test_a_job_that_went_well_shows_its_result_and_log(windlass: Command, shop: Windlass) -> None:
    shop.enqueue_sync("count", {"upto": 3}, timeout="30s")
    work(shop)
    shown = windlass("job", "1").stdout
    assert '\nresult\n  {\n    "sum": 3\n  }\n' in shown
    assert "counted to 3" in shown.partition("\nlog\n")[2]
    assert "timeout         30 s\n" in shown
    assert "attempts        1 of 3\n" in shown
    assert "\nnext\n  windlass clone 1\n" in shown
    for internal in ("timeout us", "consecutive", "spawn", "token", "held", "base priority", "crashes", "retry  "):
        assert internal not in shown


def test_a_job_that_failed_shows_its_traceback_and_what_to_do(windlass: Command, shop: Windlass) -> None:
    shop.enqueue_sync("look_up", {"key": "x"})
    work(shop)
    shown = windlass("job", "1").stdout
    error = shown.partition("\nerror\n")[2]
    assert error.startswith("  KeyError: 'x'\n")
    assert 'return {"a": "b"}[key]' in error
    assert "\nnext\n  windlass retry 1\n  windlass dead show 1\n" in shown
    letter = windlass("dead", "show", "1").stdout
    assert 'return {"a": "b"}[key]' in [line.strip() for line in letter.partition("\ntraceback\n")[2].splitlines()]
    fields = dict(re.findall(r"^(\w.*?)  +(.+)$", letter, re.MULTILINE))
    assert (fields["error"], fields["payload"]) == ("KeyError: 'x'", '{"key": "x"}')
    assert "\nnext\n  windlass dead requeue 1\n  windlass dead acknowledge 1\n  windlass job 1\n" in letter


def test_a_job_that_runs_once_more_shows_no_end(windlass: Command, shop: Windlass) -> None:
    seen: list[str] = []

    @shop.task
    def look_at_itself(ctx: JobContext) -> None:
        seen.append(windlass("job", "1").stdout)
        if ctx.attempt == 1:
            raise Retry(after="0s")

    shop.enqueue_sync("look_at_itself")
    work(shop)
    assert [text.count("\nstarted ") for text in seen] == [1, 1]
    assert [text.count("\nfinished ") for text in seen] == [0, 0]
    assert "\nfinished " in windlass("job", "1").stdout


def test_a_waiting_job_shows_when_it_is_due_and_why(windlass: Command, shop: Windlass) -> None:
    shop.enqueue_sync("count", {"upto": 3}, delay="1h")
    shown = windlass("job", "1").stdout
    assert "state           scheduled (delayed)\n" in shown
    assert "\ndue " in shown
    assert "\nnext\n  windlass run-now 1\n  windlass cancel 1\n" in shown


def test_a_cancelled_job_carries_the_reason_of_who_cancelled_it(windlass: Command, shop: Windlass) -> None:
    job = shop.enqueue_sync("count", {"upto": 3}, delay="1h")
    shop.cancel_sync(job, "changed mind")
    with pytest.raises(JobCancelled, match="job 1 was cancelled: changed mind") as told:
        shop.wait_sync(job)
    assert told.value.reason == "changed mind"
    assert "state           cancelled (changed mind)\n" in windlass("job", "1").stdout


def test_a_cancel_without_a_reason_does_not_tell_of_an_older_error(windlass: Command, shop: Windlass) -> None:
    job = shop.enqueue_sync("look_up", {"key": "x"})
    work(shop)
    shop.retry_sync(job)
    windlass("cancel", "1")
    with pytest.raises(JobCancelled, match="job 1 was cancelled: cancelled"):
        shop.wait_sync(job)
