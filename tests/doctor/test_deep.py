"""What takes a look at every row, and the recount."""

from __future__ import annotations

import asyncio

from tests.doctor.conftest import Patient
from windlass import Windlass
from windlass.core.audit import Actor, AuditFilter
from windlass.core.finding import Severity
from windlass.core.job import JobState
from windlass.store.calls.recount import recount
from windlass.store.doctor import check

ADA = Actor("ada")


async def test_a_wrong_count_is_found_and_repaired_and_audited(patient: Patient) -> None:
    for _ in range(3):
        await patient.app.enqueue("mail", {}, lane="fast")
    store = await patient.app.store()
    await store.fold_counts()
    await patient.execute("update windlass_counts set jobs = jobs + 5 where task = 'mail'")
    found = await patient.finding("counts", deep=True)
    assert (found.verdict, found.remedy) == (Severity.PROBLEM, "windlass doctor --repair")
    assert found.details == ("counts: 8 counted, 3 present: task 'mail', lane 'fast', pending new",)
    mended = await patient.finding("repair", repair=True, actor=ADA)
    assert mended.verdict is Severity.WARNING
    assert mended.details == ("task 'mail', lane 'fast', pending new: 8 counted, 3 present",)
    assert [count.jobs for count in await store.count_jobs()] == [3]
    assert (await patient.finding("counts", deep=True)).verdict is Severity.OK
    [line] = await store.audit.list(AuditFilter(action="repair counts"))
    assert (line.principal, (line.details or {})["changed"]) == ("ada", list(mended.details))
    again = await patient.finding("repair", repair=True, actor=ADA)
    assert (again.verdict, "nothing was changed" in again.message) == (Severity.OK, True)
    assert len(await store.audit.list(AuditFilter(action="repair counts"))) == 1


async def test_a_count_that_is_gone_comes_back(patient: Patient) -> None:
    await patient.app.enqueue("mail", {})
    store = await patient.app.store()
    await store.fold_counts()
    await patient.execute("delete from windlass_counts")
    await patient.finding("repair", repair=True)
    assert [(count.task, count.state, count.jobs) for count in await store.count_jobs()] == [("mail", JobState.PENDING, 1)]


async def test_totals_that_miss_runs_are_raised_to_what_is_kept(url: str) -> None:
    app = Windlass(url)

    @app.task
    def mail() -> None:
        pass

    async with app:
        patient = Patient(app)
        async with app.working():
            for _ in range(3):
                await app.wait(await mail.enqueue())
        before = await app.runs.totals()
        await patient.execute("delete from windlass_run_deltas")
        await patient.execute("delete from windlass_totals")
        assert (await patient.finding("counts", deep=True)).details == ("totals: 0 runs counted, 3 kept",)
        mended = await patient.finding("repair", repair=True)
        assert mended.details == ("runs of task 'mail', completed: 0 counted, 3 kept",)
        assert await app.runs.totals() == before
        assert (await patient.finding("counts", deep=True)).verdict is Severity.OK


async def test_a_repair_while_workers_drain_leaves_every_count_right(url: str) -> None:
    app = Windlass(url)

    @app.task
    async def mail() -> None:
        await asyncio.sleep(0)

    async with app:
        await mail.enqueue_many([{} for _ in range(400)])
        patient = Patient(app)
        await patient.execute("insert into windlass_counts (task, lane, state, jobs) values ('mail', 'default', 'completed', 7)")
        store = await app.store()
        async with app.working():
            # The first one mends seven that are too many; the others find nothing, whatever moves meanwhile.
            changed = [(await store.run(recount())).is_changed]
            while any(count.state is not JobState.COMPLETED and count.jobs for count in await store.count_jobs()):
                changed.append((await store.run(recount())).is_changed)
        assert changed == [True, *[False] * (len(changed) - 1)]
        assert await check(store) == []
        counts = {count.state: count.jobs for count in await store.count_jobs() if count.jobs}
        assert counts == {JobState.COMPLETED: 400}


async def test_two_repairs_at_once_mend_once(patient: Patient) -> None:
    await patient.app.enqueue("mail", {})
    store = await patient.app.store()
    await store.fold_counts()
    await patient.execute("update windlass_counts set jobs = 9")
    changed = [one.is_changed for one in await asyncio.gather(*(store.run(recount()) for _ in range(4)))]
    assert sum(changed) == 1
    assert [count.jobs for count in await store.count_jobs()] == [1]


async def test_a_row_without_its_body_is_reported_with_its_job(patient: Patient) -> None:
    job = await patient.app.enqueue("mail", {})
    await patient.execute("delete from windlass_bodies")
    found = await patient.finding("rows", deep=True)
    assert (found.verdict, found.details) == (Severity.PROBLEM, (f"body: job {job.id}: has 0 bodies",))


async def test_an_edited_audit_line_breaks_the_chain(patient: Patient) -> None:
    await patient.app.acting(ADA).lanes.pause("fast")
    store = await patient.app.store()
    await store.audit.chain()
    assert (await patient.finding("audit", deep=True)).verdict is Severity.OK
    table = " on windlass_audit" if store.database.dialect == "postgres" else ""
    await patient.execute(f"drop trigger windlass_audit_edited{table}")
    await patient.execute("update windlass_audit set principal = 'bob'")
    found = await patient.finding("audit", deep=True)
    assert (found.verdict, "was edited" in found.details[0]) == (Severity.PROBLEM, True)


async def test_how_far_it_is_can_be_heard(patient: Patient) -> None:
    await patient.app.enqueue("mail", {})
    heard: list[tuple[str, int]] = []
    await patient.examined(deep=True, notice=lambda what, rows: heard.append((what, rows)))
    assert ("database", 0) in heard
    assert ("jobs", 1) in heard
    assert heard[-1] == ("audit", 0)
