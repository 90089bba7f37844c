"""Every alert is raised by the situation it is for, once, and cleared when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim, claim_one, due, end, enqueue_one, fail_for_good, failure, recurring, running
from windlass.core.alert_rules import RULES, AlertRule, AlertSeverity, read_rules
from windlass.core.alert_signs import Machine
from windlass.core.alerts import Notice
from windlass.core.audit import Actor
from windlass.core.breaker import BreakerSpec
from windlass.core.job import NewJob
from windlass.core.outcome import Run
from windlass.core.worker import NewWorker
from windlass.errors import InvalidInput
from windlass.packs.demo import PARTNER
from windlass.store import Store
from windlass.testing import FakeClock

STEP = 15
NOBODY = Machine()


def only(text: str) -> Mapping[str, AlertRule]:
    """Switch off every rule but those of a setting."""
    named = {part.partition("=")[0] for part in text.split(";")}
    others = ";".join(f"{name}=off" for name in RULES if name not in named)
    return read_rules(f"{text};{others}")


def rule(name: str) -> Mapping[str, AlertRule]:
    """Switch off every rule but one."""
    return read_rules(";".join(f"{other}=off" for other in RULES if other != name))


async def look(store: Store, rules: Mapping[str, AlertRule] = RULES, machine: Machine = NOBODY) -> dict[str, list[str]]:
    """Evaluate once; returns the subjects of the open alerts by rule."""
    await store.alerts.evaluate(rules, machine)
    return await opened(store)


async def opened(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in (await store.alerts.board()).open:
        found.setdefault(one.alert.rule, []).append(one.alert.subject)
    return {name: sorted(subjects) for name, subjects in found.items()}


async def looks(store: Store, clock: FakeClock, rules: Mapping[str, AlertRule], *, minutes: float) -> dict[str, list[str]]:
    """Evaluate every 15 seconds for some minutes."""
    found = {}
    for _ in range(int(minutes * 60 / STEP)):
        clock.advance(seconds=STEP)
        found = await look(store, rules)
    return found


async def a_worker(store: Store, name: str = "worker-1", *, pools: str = '{"*":5}', tasks: str = '["work"]') -> None:
    await store.workers.register(NewWorker(id=name, host="h", pid=1, version="1", pools=pools, tasks=tasks))


async def run_many(store: Store, clock: FakeClock, *, good: int = 0, bad: int = 0, ms: int = 10, task: str = "work") -> None:
    await store.enqueue([a_job(task, max_attempts=5) for _ in range(good + bad)])
    for place, job in enumerate(await claim(store, good + bad)):
        run = Run(job.claimed_at, job.claimed_at + timedelta(milliseconds=ms))
        assert await end(store, clock, job, failure() if place < bad else None, run=run)


async def test_a_quiet_queue_has_no_alert(store: Store, clock: FakeClock) -> None:
    await a_worker(store)
    await run_many(store, clock, good=30)
    assert await look(store) == {}
    assert await store.alerts.history() == []


async def test_many_pending_jobs_are_an_alert_after_a_while(store: Store, clock: FakeClock) -> None:
    rules = only("pending=5,for=5m")
    await store.enqueue([a_job(lane="mail") for _ in range(6)] + [a_job(lane="other") for _ in range(5)])
    assert await look(store, rules) == {}
    assert await looks(store, clock, rules, minutes=4.5) == {}
    assert await looks(store, clock, rules, minutes=0.5) == {"pending": ["mail"]}
    [shown] = (await store.alerts.board()).open
    assert "6 jobs are pending in lane mail" in shown.alert.message
    assert (shown.command, shown.path) == (
        "windlass explain --lane mail",
        "/jobs?state=pending&lane=mail",
    )
    assert shown.severity is AlertSeverity.WARNING


async def test_a_condition_that_ends_before_its_time_raises_nothing(store: Store, clock: FakeClock) -> None:
    rules = only("pending=5,for=5m")
    await store.enqueue([a_job() for _ in range(6)])
    assert await looks(store, clock, rules, minutes=4) == {}
    assert await end(store, clock, await claim_one(store))
    assert await look(store, rules) == {}
    await store.enqueue([a_job()])
    # Counted anew.
    assert await looks(store, clock, rules, minutes=4) == {}
    assert await store.alerts.history() == []
    assert await looks(store, clock, rules, minutes=1.5) == {"pending": ["default"]}


async def test_a_value_around_its_threshold_is_one_alert(store: Store, clock: FakeClock) -> None:
    rules = only("depth=10")
    await store.enqueue([a_job() for _ in range(11)])
    assert await look(store, rules) == {"depth": [""]}
    for _ in range(20):
        clock.advance(seconds=STEP)
        assert await end(store, clock, await claim_one(store))
        assert await look(store, rules) == {"depth": [""]}
        await store.enqueue([a_job()])
    for job in await claim(store, 5):
        assert await end(store, clock, job)
    # Six are below the lower bound, but it has to stay so.
    assert await looks(store, clock, rules, minutes=2) == {"depth": [""]}
    await store.enqueue([a_job() for _ in range(5)])
    assert await look(store, rules) == {"depth": [""]}
    for job in await claim(store, 10):
        assert await end(store, clock, job)
    assert await looks(store, clock, rules, minutes=2.25) == {}
    [past] = await store.alerts.history()
    assert past.alert.cleared_at == clock.now()


async def test_failed_runs_of_a_task_are_an_alert(store: Store, clock: FakeClock) -> None:
    await run_many(store, clock, good=10, bad=5, task="few")
    await run_many(store, clock, good=18, bad=2, task="fine")
    await run_many(store, clock, good=17, bad=3, task="bad")
    assert await look(store, rule("error_rate")) == {"error_rate": ["bad"]}
    # Nothing new has run: the window has passed.
    assert await looks(store, clock, rule("error_rate"), minutes=13.5) == {}


async def test_jobs_that_fail_for_good_are_an_alert(store: Store, clock: FakeClock) -> None:
    await run_many(store, clock, good=27)
    for _ in range(2):
        await fail_for_good(store, clock)
    assert await look(store, rule("failed_rate")) == {}
    for _ in range(2):
        await fail_for_good(store, clock)
    assert await look(store, rule("failed_rate")) == {"failed_rate": [""]}
    [shown] = (await store.alerts.board()).open
    assert "4 of 31" in shown.alert.message


async def test_a_job_that_runs_for_an_hour_is_an_alert(store: Store, clock: FakeClock) -> None:
    job = await running(store)
    clock.advance(minutes=59)
    assert await look(store, rule("running")) == {}
    clock.advance(minutes=2)
    assert await look(store, rule("running")) == {"running": [str(job.id)]}
    [shown] = (await store.alerts.board()).open
    assert shown.command == f"windlass job {job.id}"
    assert shown.path == f"/jobs/{job.id}"
    assert await end(store, clock, job)
    assert await looks(store, clock, rule("running"), minutes=2.5) == {}


async def test_a_job_that_waits_for_an_hour_is_an_alert(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(lane="slow lane"))
    clock.advance(minutes=59)
    assert await look(store, rule("oldest_pending")) == {}
    clock.advance(minutes=2)
    assert await look(store, rule("oldest_pending")) == {"oldest_pending": ["slow lane"]}
    [shown] = (await store.alerts.board()).open
    assert shown.command.endswith("--lane 'slow lane'")
    assert shown.path.endswith("&lane=slow%20lane")


async def test_a_fast_pool_without_free_slots_is_an_alert(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(lane="fast") for _ in range(2)])
    await claim(store, 2)
    found = {}
    for _ in range(10):
        # As a worker does that lives.
        await a_worker(store, pools='{"fast":2,"*":2}')
        found = await look(store, rule("fast_pool"))
        if found:
            break
        clock.advance(seconds=STEP)
    assert found == {"fast_pool": [""]}
    assert clock.now() - clock.started_at == timedelta(minutes=2)


async def test_an_open_breaker_is_an_alert_until_it_is_closed(store: Store, clock: FakeClock) -> None:
    spec = BreakerSpec("mail", 2, timedelta(minutes=1))
    await store.breakers.record(spec, succeeded=False, failures=1)
    assert await look(store, rule("breaker")) == {}
    await store.breakers.record(spec, succeeded=False, failures=1)
    assert await look(store, rule("breaker")) == {"breaker": ["mail"]}
    await store.breakers.reset("mail")
    assert await looks(store, clock, rule("breaker"), minutes=1.25) == {}


async def test_what_goes_wrong_every_minute_is_one_alert_for_ten_minutes(store: Store, clock: FakeClock) -> None:
    """What the demo does: a partner that fails three times a minute, and a breaker that opens and closes again."""
    rules = only("breaker=for=0s;error_rate=10%")
    raised: list[str] = []
    cleared: list[str] = []
    for second in range(0, 600, STEP):
        clock.advance(seconds=STEP)
        if second % 60 == 0:
            await run_many(store, clock, good=18, bad=3)
            await store.breakers.record(PARTNER, succeeded=False, failures=PARTNER.threshold)
        elif second % 60 > PARTNER.open_for.total_seconds():
            await store.breakers.reset(PARTNER.name)
        seen = await store.alerts.evaluate(rules, NOBODY)
        raised += [one.alert.rule for one in seen.raised]
        cleared += [one.alert.rule for one in seen.cleared]
    assert (sorted(raised), cleared) == (["breaker", "error_rate"], [])


async def test_a_schedule_that_nobody_serves_in_time_is_an_alert(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(recurrence=recurring(timedelta(minutes=30)), name="report", delay=timedelta(minutes=1)))
    clock.advance(minutes=1, seconds=50)
    assert await look(store, rule("schedule")) == {}
    clock.advance(seconds=20)
    assert await look(store, rule("schedule")) == {"schedule": [""]}


async def test_a_recurring_job_that_often_fails_is_an_alert(store: Store, clock: FakeClock) -> None:
    every = timedelta(minutes=10)
    good = await enqueue_one(store, a_job(recurrence=recurring(every), delay=timedelta(0), name="good", max_attempts=1))
    bad = await enqueue_one(store, a_job("bad", recurrence=recurring(every), delay=timedelta(0), name="bad", max_attempts=1))
    for place in range(10):
        await due(store)
        for job in await claim(store, 2):
            is_bad = place % 3 == 0 if job.id == bad else place == 5
            assert await end(store, clock, job, failure() if is_bad else None)
        clock.advance(minutes=10)
    assert await look(store, rule("success_rate")) == {"success_rate": [str(bad)]}
    assert good != bad


async def test_runs_that_take_twice_as_long_are_an_alert(store: Store, clock: FakeClock) -> None:
    await run_many(store, clock, good=20, ms=100)
    await run_many(store, clock, good=20, ms=100, task="same")
    await run_many(store, clock, good=20, ms=4, task="quick")
    clock.advance(minutes=30)
    await run_many(store, clock, good=20, ms=190, task="same")
    # A few milliseconds more are no news, however many times as long.
    await run_many(store, clock, good=20, ms=20, task="quick")
    await run_many(store, clock, good=19, ms=900)
    assert await look(store, rule("duration")) == {}
    await run_many(store, clock, good=1, ms=900)
    assert await look(store, rule("duration")) == {"duration": ["work"]}
    await store.runs.fold()
    clock.advance(minutes=1)
    assert await look(store, rule("duration")) == {"duration": ["work"]}


async def test_a_lost_lease_is_an_alert_for_ten_minutes(store: Store, clock: FakeClock) -> None:
    assert await look(store, rule("lost_leases")) == {}
    await running(store)
    clock.advance(minutes=2)
    assert len(await store.reclaim()) == 1
    assert await look(store, rule("lost_leases")) == {"lost_leases": [""]}
    assert await looks(store, clock, rule("lost_leases"), minutes=9) == {"lost_leases": [""]}
    assert await looks(store, clock, rule("lost_leases"), minutes=4) == {}


async def test_jobs_that_no_worker_takes_are_an_alert(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job("unknown"))
    await enqueue_one(store, a_job("work", lane="mail"))
    await enqueue_one(store, a_job("work"))
    found = {}
    for _ in range(5):
        await a_worker(store, pools='{"default":1}')
        found = await look(store, rule("unserved"))
        clock.advance(seconds=STEP)
    assert found == {"unserved": ["unknown in default", "work in mail"]}


async def test_a_chore_that_nobody_does_is_an_alert(store: Store, clock: FakeClock) -> None:
    permit = await store.chores.due("fold", timedelta(seconds=10), "upkeep-1")
    assert permit is not None
    clock.advance(minutes=5)
    assert await look(store, rule("upkeep")) == {}
    assert await looks(store, clock, rule("upkeep"), minutes=1.5) == {"upkeep": ["fold"]}
    await store.chores.due("fold", timedelta(minutes=10), "upkeep-1")
    assert await looks(store, clock, rule("upkeep"), minutes=1.25) == {}


async def test_a_reader_sees_that_nobody_looks(store: Store, clock: FakeClock) -> None:
    assert (await store.alerts.board()).open == []
    await store.chores.due("alerts", timedelta(seconds=15), "upkeep-1")
    clock.advance(minutes=2)
    assert await opened(store) == {}
    clock.advance(minutes=1)
    assert await opened(store) == {"upkeep": ["alerts"]}
    await store.chores.due("alerts", timedelta(seconds=15), "upkeep-1")
    assert await opened(store) == {}
    await store.chores.pause("alerts")
    assert await opened(store) == {"upkeep": ["alerts"]}


async def test_a_chore_that_fails_is_an_alert(store: Store, clock: FakeClock) -> None:
    permit = await store.chores.due("fold", timedelta(hours=1), "upkeep-1")
    assert permit is not None
    await store.chores.done(permit, 0, timedelta(), error="StoreRefused: no")
    assert await look(store, rule("chore_failing")) == {}
    assert await looks(store, clock, rule("chore_failing"), minutes=2) == {"chore_failing": ["fold"]}


async def test_a_worker_that_goes_without_goodbye_is_an_alert(store: Store, clock: FakeClock) -> None:
    await a_worker(store, "killed")
    await a_worker(store, "stopped")
    await store.workers.stopped("stopped")
    assert await look(store, rule("worker_gone")) == {}
    clock.advance(seconds=61)
    assert await look(store, rule("worker_gone")) == {"worker_gone": ["killed"]}
    clock.advance(hours=1)
    assert await looks(store, clock, rule("worker_gone"), minutes=1.5) == {}


async def test_a_clock_that_differs_is_an_alert(store: Store, clock: FakeClock) -> None:
    found = {}
    for _ in range(5):
        found = await look(store, rule("clock"), Machine(now=clock.now() + timedelta(seconds=6)))
        clock.advance(seconds=STEP)
    assert found == {"clock": [""]}
    for _ in range(10):
        clock.advance(seconds=STEP)
        found = await look(store, rule("clock"), Machine(now=clock.now()))
    assert found == {}


async def test_a_disk_that_is_nearly_full_is_an_alert(store: Store) -> None:
    assert await look(store, rule("disk"), Machine(disk_used=0.94)) == {}
    assert await look(store, rule("disk"), Machine(disk_used=0.96)) == {"disk": [""]}


async def test_any_number_that_look_at_once_raise_one_alert(stores: list[Store], clock: FakeClock) -> None:
    rules = only("depth=2;pending=2,for=1m")
    await stores[0].enqueue([a_job() for _ in range(3)])
    told: list[Notice] = []

    def notify(notice: Notice) -> list[NewJob]:
        told.append(notice)
        return [a_job("tell", lane="tell")]

    async def all_look() -> None:
        await asyncio.gather(*(store.alerts.evaluate(rules, NOBODY, notify) for store in stores))

    for _ in range(6):
        await all_look()
        clock.advance(seconds=STEP)
    assert await opened(stores[0]) == {"depth": [""], "pending": ["default"]}
    jobs = {count.lane: count.jobs for count in await stores[0].count_jobs()}
    assert jobs == {"default": 3, "tell": 2}
    for job in await claim(stores[0], 5):
        assert await end(stores[0], clock, job)
    for _ in range(11):
        clock.advance(seconds=STEP)
        await all_look()
    assert await opened(stores[0]) == {}
    assert [one.alert.rule for one in await stores[0].alerts.history()] == ["depth", "pending"]
    cleared = [count.jobs for count in await stores[0].count_jobs() if count.lane == "tell" and count.state == "pending"]
    assert cleared == [2]


async def test_a_silence_ends_and_is_audited(store: Store, clock: FakeClock) -> None:
    rules = only("depth=0;oldest_pending=1s")
    operator = store.acting(Actor("ada"))
    made = await operator.alerts.silence("depth", "10m", reason="we know")
    assert (made.created_by, made.until) == ("ada", clock.now() + timedelta(minutes=10))
    await operator.alerts.silence("oldest_pending", "1h", reason="another lane", subject="other")
    await enqueue_one(store)
    clock.advance(seconds=2)
    told: list[str] = []

    def notify(notice: Notice) -> list[NewJob]:
        told.append(notice.alert.alert.rule)
        return []

    await store.alerts.evaluate(rules, NOBODY, notify)
    board = await store.alerts.board()
    assert [one.alert.rule for one in board.open] == told == ["oldest_pending"]
    assert [(one.alert.rule, one.silence and one.silence.reason) for one in board.silenced] == [("depth", "we know")]
    clock.advance(minutes=10)
    assert [one.alert.rule for one in (await store.alerts.board()).open] == ["oldest_pending", "depth"]
    assert await operator.alerts.unsilence("depth") is False
    assert await operator.alerts.unsilence("oldest_pending", subject="other") is True
    assert (await store.alerts.board()).silences == []
    actions = [(one.action, one.target, one.principal) for one in await store.audit.list()]
    assert actions[0] == ("unsilence alerts", "alert:oldest_pending:other", "ada")
    assert actions[-1] == ("silence alerts", "alert:depth", "ada")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("dept", "1h"), "did you mean depth"),
        (("depth", "31d"), "for: must be a duration of 1s to 30d"),
        (("depth", "soon"), "for: "),
    ],
)
async def test_a_bad_silence_is_refused(store: Store, call: tuple[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        await store.alerts.silence(*call, reason="x")
    with pytest.raises(InvalidInput, match="reason: must be a text"):
        await store.alerts.silence("depth", "1h", reason="")


async def test_a_rule_that_is_switched_off_clears_its_alert(store: Store) -> None:
    await enqueue_one(store)
    assert await look(store, only("depth=0")) == {"depth": [""]}
    assert await look(store, read_rules(";".join(f"{name}=off" for name in RULES))) == {}


async def test_a_rule_has_a_bounded_number_of_alerts(store: Store) -> None:
    await store.enqueue([a_job(lane=f"lane-{place:03}") for place in range(60)])
    found = await look(store, only("pending=0,for=0s"))
    assert len(found["pending"]) == 50
    assert await look(store, only("pending=0,for=0s")) == found


async def test_old_alerts_are_forgotten(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store)
    await look(store, only("depth=0"))
    off = read_rules(";".join(f"{name}=off" for name in RULES))
    await look(store, off)
    assert len(await store.alerts.history()) == 1
    clock.advance(days=91)
    await look(store, off)
    assert await store.alerts.history() == []
