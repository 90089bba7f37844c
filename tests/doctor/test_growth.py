"""What grows and is not made smaller."""

from __future__ import annotations

import pytest

from tests.doctor.conftest import ON_POSTGRES, Patient
from windlass import Windlass
from windlass.core.audit import Actor
from windlass.core.finding import Severity
from windlass.doctor import growth_checks


@ON_POSTGRES
async def test_deltas_that_nobody_folds_are_counted(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(growth_checks._TOO_MANY, "count deltas", 10)
    for _ in range(10):
        await patient.app.enqueue("mail", {})
    found = await patient.finding("backlog")
    assert (found.verdict, "count deltas: 10" in found.message) == (Severity.WARNING, True)
    await (await patient.app.store()).fold_counts()
    assert (await patient.finding("backlog")).verdict is Severity.OK


async def test_audit_lines_that_nobody_chains_are_counted(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(growth_checks._TOO_MANY, "unchained", 2)
    monkeypatch.setattr(growth_checks, "_MOST", 3)
    for lane in ("a", "b", "c", "d"):
        await patient.app.acting(Actor("ann")).lanes.pause(lane)
    found = await patient.finding("backlog")
    assert (found.verdict, found.details) == (Severity.WARNING, ("unchained: more than 2",))
    await (await patient.app.store()).audit.chain()
    assert (await patient.finding("backlog")).verdict is Severity.OK


async def test_letters_that_nobody_deals_with_are_counted(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(growth_checks._TOO_MANY, "open letters", 1)
    job = await patient.app.enqueue("mail", {})
    await patient.app.bury(job, "no more")
    found = await patient.finding("backlog")
    assert (found.verdict, "windlass dead acknowledge --all" in str(found.remedy)) == (Severity.WARNING, True)


async def test_history_that_is_kept_for_ever_is_named(url: str) -> None:
    async with Windlass(url, keep_days=36_500) as app:
        found = await Patient(app).finding("retention")
    assert (found.verdict, "WINDLASS_KEEP_DAYS" in str(found.remedy)) == (Severity.WARNING, True)


async def test_a_table_that_nothing_makes_smaller_is_named_when_it_is_large(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth_checks, "_LARGE", 3)
    assert (await patient.finding("growth")).verdict is Severity.OK
    for lane in ("a", "b", "c"):
        await patient.app.acting(Actor("ann")).lanes.pause(lane)
    await patient.execute("analyze windlass_audit")
    found = await patient.finding("growth")
    assert (found.verdict, "windlass_audit has about 3 rows" in found.message) == (Severity.WARNING, True)
