"""`windlass trace`: a correlation as a waterfall."""

from __future__ import annotations

import time
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.test_nouns import BOTH
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.ids import job_uuid
from windlass.core.job import Claimed, Lease, NewJob
from windlass.core.outcome import Failure, Raised, Returned, Run, decide

_tokens = count(1)


def take(app: Windlass) -> Claimed:
    store = run(app.blocking_store())
    [held] = run(store.claim(run(store.slices()), 1, Lease(next(_tokens), "w", timedelta(minutes=5)), started=True))
    return held


def finish(app: Windlass, held: Claimed, error: str | None = None) -> None:
    store = run(app.blocking_store())
    now = run(store.clock())
    outcome = Returned() if error is None else Raised(Failure(error, "RuntimeError"))
    run(store.finish([decide(held, outcome, Run(held.claimed_at, now), now=now, rng=Random(1))]))


def an_order(app: Windlass) -> list[int]:
    """Leave a checkout with a charge that failed once, a receipt that waits behind it, and a shipment that runs."""
    [checkout] = app.enqueue_jobs_sync([NewJob(task="checkout", correlation_id="order-7")])
    held = take(app)
    children = [NewJob(task=name, correlation_id="order-7", parent_id=checkout.id) for name in ("charge", "ship")]
    charge, ship = app.enqueue_jobs_sync(children)
    time.sleep(0.05)
    finish(app, held)
    finish(app, take(app), "card declined")
    [receipt] = app.enqueue_jobs_sync(
        [NewJob(task="receipt", correlation_id="order-7", parent_id=charge.id, delay=timedelta(hours=1))]
    )
    take(app)
    return [checkout.id, charge.id, ship.id, receipt.id]


@BOTH
def test_a_trace_is_a_tree_with_waits_runs_and_states(windlass: Command, ask: Any, app: Windlass) -> None:
    checkout, charge, ship, receipt = an_order(app)
    lines = windlass("trace", "order-7").stdout.splitlines()
    assert lines[0] == "windlass: correlation order-7: 4 jobs"
    assert lines[1].split()[:5] == ["job", "state", "tries", "wait", "run"]
    assert [line.split("  ")[0] for line in lines[2:6]] == [
        f"{checkout} checkout",
        f"├ {charge} charge",
        f"│ └ {receipt} receipt",
        f"└ {ship} ship",
    ]
    for line, state, mark in zip(lines[2:6], ("completed", "scheduled", "scheduled", "running"), "█x·▒", strict=True):
        assert (state in line, mark in line) == (True, True), line
    assert max(map(len, lines[1:7])) <= 100
    assert lines[-1] == f"windlass: job {charge}: card declined"
    # A job's number and its UUID find the correlation it belongs to.
    for name in (str(receipt), str(job_uuid(checkout))):
        assert [one["number"] for one in ask("trace", name)["jobs"]] == [checkout, charge, receipt, ship]
    found = ask("trace", "order-7")["jobs"]
    assert (found[1]["runs"][0]["status"], found[1]["executions"], found[0]["depth"], found[2]["depth"]) == ("failed", 1, 0, 2)
    assert found[0]["run_ms"] >= 50


def test_a_trace_fits_the_terminal_and_needs_no_more_than_ascii(
    windlass: Command, app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_order(app)
    [long] = app.enqueue_jobs_sync([NewJob(task="t" * 120 + "\x1b[31m", correlation_id="order-7")])
    lines: list[str] = []
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = windlass("trace", "order-7", "--ascii").stdout.splitlines()
        assert max(map(len, lines[1:8])) <= columns
        assert "\n".join(lines[1:9]).isascii()
        assert "\x1b" not in "\n".join(lines)
    assert any(line.startswith("|- ") for line in lines)
    assert any(f"{long.id} ttt" in line for line in lines)


def test_what_nothing_is_known_of_is_not_found(windlass: Command, app: Windlass) -> None:
    assert "correlation 'order-8' not found: no job has it" in windlass("trace", "order-8", code=1).stderr
    assert "and none has this number or UUID" in windlass("trace", "99", code=1).stderr
    [own] = app.enqueue_jobs_sync([NewJob(task="alone")])
    assert f"{own.id} alone" in windlass("trace", str(own.id)).stdout
    # A number may be somebody's correlation id, and then that is meant.
    app.enqueue_jobs_sync([NewJob(task="numbered", correlation_id=str(own.id))])
    assert "numbered" in windlass("trace", str(own.id)).stdout
    assert "must be a text" in windlass("trace", "x" * 1001, code=2).stderr
