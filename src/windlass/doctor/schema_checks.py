"""What belongs to the tables: indexes and triggers."""

from __future__ import annotations

from windlass.core.finding import Finding, ok, problem
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import counted
from windlass.store.schema_objects import SchemaObject, schema_objects


async def check_indexes(case: DoctorCase) -> Finding:
    """Look for indexes that are missing or not in use: a claim would read whole tables."""
    wanted, missing, unsound = await _compare(case, "index")
    if missing:
        names = ", ".join(one.name for one in missing)
        message = f"{counted(len(missing), 'index is', 'indexes are')} missing ({names}): queries read whole tables"
        return problem("indexes", message, _online(missing[0], case), *(one.sql for one in missing))
    if unsound:
        names = ", ".join(one.name for one in unsound)
        message = (
            f"{counted(len(unsound), 'index is', 'indexes are')} not valid ({names}): no query uses what was left unfinished"
        )
        return problem("indexes", message, f"reindex index concurrently {unsound[0].name}")
    return ok("indexes", f"all {wanted} are there and in use")


def _online(one: SchemaObject, case: DoctorCase) -> str:
    """Write how to make an index while everything runs."""
    text = " ".join(one.sql.split())
    return text.replace("index ", "index concurrently ", 1) if case.is_postgres else text


async def check_triggers(case: DoctorCase) -> Finding:
    """Look for triggers that are missing or disabled: they keep the counts, and the audit log append-only."""
    wanted, missing, unsound = await _compare(case, "trigger")
    if missing:
        names = ", ".join(one.name for one in missing)
        message = f"{counted(len(missing), 'trigger is', 'triggers are')} missing ({names}): counts go wrong"
        remedy = "make them again by the statements below, then `windlass doctor --repair`"
        return problem("triggers", message, remedy, *(one.sql for one in missing))
    if unsound:
        names = ", ".join(one.name for one in unsound)
        message = f"{counted(len(unsound), 'trigger is', 'triggers are')} disabled ({names}): counts go wrong"
        one = unsound[0]
        remedy = f"alter table {one.table} enable trigger {one.name}; then `windlass doctor --repair`"
        return problem("triggers", message, remedy)
    return ok("triggers", f"all {wanted} are there and enabled")


async def _compare(case: DoctorCase, kind: str) -> tuple[int, list[SchemaObject], list[SchemaObject]]:
    """Return how many are wanted, which are missing, and which are there and not in use."""
    present = {name: is_sound for one, name, is_sound in await case.ask("doctor_objects") if one == kind}
    wanted = [one for (of, _), one in schema_objects(case.store.database.dialect).items() if of == kind]
    missing = [one for one in wanted if one.name not in present]
    return len(wanted), missing, [one for one in wanted if not present.get(one.name, True)]
