"""The chore that raises alerts, done by one instance or by five at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from tests.store.builders import a_job
from windlass.core.alert_rules import RULES, AlertRule, read_rules
from windlass.core.alerts import Notice
from windlass.core.job import NewJob
from windlass.core.topic import Topic
from windlass.store import Store
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock
from windlass.upkeep.chores import AlertOptions, UpkeepOptions
from windlass.upkeep.loop import Upkeep

Fleet = Callable[..., list[Upkeep]]


def only(text: str) -> Mapping[str, AlertRule]:
    off = ";".join(f"{name}=off" for name in RULES if not text.startswith(f"{name}="))
    return read_rules(f"{text};{off}")


@pytest.mark.parametrize("count", [1, 5])
async def test_any_number_of_instances_raise_one_alert(
    fleet: Fleet, store: Store, clock: FakeClock, *, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Notice] = []

    def notify(notice: Notice) -> list[NewJob]:
        told.append(notice)
        return []

    options = UpkeepOptions(alerts=AlertOptions(rules=only("depth=2"), notify=notify))
    instances = fleet(count, options=options)
    await store.enqueue([a_job() for _ in range(3)])
    async with store.wakeups as wakeups:
        before = wakeups.generation(Topic.ALERTS)
        with caplog.at_level(logging.WARNING, "windlass.upkeep"):
            for _ in range(4):
                await asyncio.gather(*(upkeep.round() for upkeep in instances))
                clock.advance(seconds=16)
        assert wakeups.generation(Topic.ALERTS) > before
    assert [one.alert.rule for one in (await store.alerts.board()).open] == ["depth"]
    assert [one.is_raised for one in told] == [True]
    warned = [line for line in caplog.messages if line.startswith("alert depth")]
    assert warned == ["alert depth: 3 jobs are pending in all lanes (more than 2); try: windlass lanes"]


async def test_the_disk_of_a_file_is_looked_at(fleet: Fleet, store: Store) -> None:
    [upkeep] = fleet(1, options=UpkeepOptions(alerts=AlertOptions(rules=only("disk=0.0001"))))
    await upkeep.round()
    is_file = isinstance(store.database, Sqlite) and store.database.path != ":memory:"
    assert [one.alert.rule for one in (await store.alerts.board()).open] == (["disk"] if is_file else [])
