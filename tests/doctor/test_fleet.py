"""Whether somebody does the work."""

from __future__ import annotations

from datetime import timedelta

from tests.doctor.conftest import Patient
from tests.store.builders import a_lease
from windlass import Windlass
from windlass.clock import machine_time
from windlass.core.finding import Severity
from windlass.core.worker import NewWorker


async def test_jobs_that_no_worker_runs_are_a_problem_until_one_does(url: str) -> None:
    app = Windlass(url)

    @app.task
    def mail() -> None:
        pass

    async with app:
        patient = Patient(app)
        await app.enqueue("mail", {}, delay="1h")
        found = await patient.finding("workers")
        assert (found.verdict, "no worker is alive, and 1 job waits" in found.message) == (Severity.PROBLEM, True)
        assert (await patient.finding("upkeep")).verdict is Severity.PROBLEM
        async with app.working():
            assert (await patient.finding("workers")).message == "1 worker is alive"
            assert (await patient.finding("upkeep")).verdict is Severity.OK
            assert (await patient.examined()).verdict is Severity.OK


async def test_a_lane_that_no_worker_serves_is_named(url: str) -> None:
    app = Windlass(url, pools="fast=1", accept_unknown=True)

    @app.task
    def mail() -> None:
        pass

    async with app, app.working():
        patient = Patient(app)
        await app.enqueue("mail", {}, lane="slow")
        await app.enqueue("fax", {}, lane="fast")
        found = await patient.finding("served")
    assert (found.verdict, "2 jobs wait" in found.message) == (Severity.PROBLEM, True)
    assert any("lane 'slow'" in one for one in found.details)
    assert any("task 'fax'" in one for one in found.details)
    assert found.remedy is not None


async def test_upkeep_that_has_stopped_is_a_problem_when_something_waits(patient: Patient) -> None:
    async with patient.app.keeping():
        pass
    later = machine_time() + timedelta(hours=1)
    assert (await patient.finding("upkeep", at=later)).verdict is Severity.OK
    await patient.app.enqueue("mail", {})
    found = await patient.finding("upkeep", at=later)
    assert (found.verdict, "windlass upkeep" in str(found.remedy)) == (Severity.PROBLEM, True)


async def test_a_chore_that_is_paused_or_fails_is_named(patient: Patient) -> None:
    await patient.app.chores.pause("prune")
    found = await patient.finding("chores")
    assert (found.verdict, found.remedy) == (Severity.WARNING, "windlass chores resume prune")
    await patient.app.chores.resume("prune")
    await patient.execute("update windlass_chores set last_error = 'disk full' where name = 'prune'")
    found = await patient.finding("chores")
    assert (found.verdict, found.details) == (Severity.WARNING, ("prune: disk full",))


async def test_a_worker_that_ended_without_reporting_it_is_named(patient: Patient) -> None:
    await patient.app.workers.register(NewWorker(id="w1", host="host", pid=1, version="1"))
    found = await patient.finding("workers", at=machine_time() + timedelta(minutes=5))
    assert (found.verdict, found.details[0].startswith("w1, last seen 5 min")) == (Severity.WARNING, True)
    assert (await patient.finding("workers", at=machine_time() + timedelta(hours=3))).verdict is Severity.OK


async def test_a_due_job_that_nobody_promotes_is_overdue(patient: Patient) -> None:
    job = await patient.app.enqueue("mail", {}, delay="1m")
    assert (await patient.finding("overdue")).verdict is Severity.OK
    for minutes, verdict in ((3, Severity.WARNING), (30, Severity.PROBLEM)):
        found = await patient.finding("overdue", at=machine_time() + timedelta(minutes=minutes))
        assert (found.verdict, f"job {job.id} (mail) was due" in found.message) == (verdict, True)


async def test_a_lease_that_nobody_takes_back_is_overdue(patient: Patient) -> None:
    await patient.app.enqueue("mail", {})
    store = await patient.app.store()
    [job] = await store.claim(await store.slices(), 1, a_lease())
    found = await patient.finding("overdue", at=machine_time() + timedelta(hours=1))
    assert (found.verdict, f"job {job.id} (mail) has lost its worker" in found.message) == (Severity.PROBLEM, True)
