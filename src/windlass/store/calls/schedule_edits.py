"""Schedules made and changed by hand: by number, and never over one that is there already."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

from windlass.core.audit import Deed
from windlass.core.cadence import Recurrence
from windlass.core.job import CLOSED, Job, NewJob, OnConflict
from windlass.core.schedule_edit import ScheduleEdit
from windlass.errors import InvalidInput, JobNotFound, ScheduleExists, StoreConflict
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.move import answer, numbers
from windlass.store.calls.schedules import found_parts
from windlass.store.calls.work import enqueue


def create(job: NewJob, *, is_enabled: bool = True) -> Call[Job]:
    """Make a schedule; raises ScheduleExists where its name is taken."""
    if job.name is None or job.recurrence is None:
        raise InvalidInput("name", job.name, "a schedule has a name and a cadence")
    name = job.name

    def steps(means: Means) -> Steps[Job]:
        [made] = yield from enqueue([replace(job, on_conflict=OnConflict.IGNORE)]).steps(means)
        if made.is_duplicate:
            raise ScheduleExists(job.task, name, made.id)
        if not is_enabled:
            yield Step("disable", {"ids": numbers([made.id])})
        return (yield from _read(made.id))

    return Call(steps, wakes=lambda left: wakes.by_jobs([left]), deed=partial(_told_of, "create schedule"))


def change(job_id: int, edit: ScheduleEdit) -> Call[Job]:
    """Change a schedule, all or nothing; raises ScheduleExists where its new name is taken."""

    def steps(means: Means) -> Steps[Job]:
        yield Step("lock_jobs", {"ids": numbers([job_id])})
        [[moment]] = yield Step("clock", {})
        found = yield from _read(job_id)
        if found.cadence is None:
            raise JobNotFound(job_id)
        if edit.name is not None and edit.name != found.name:
            yield from _rename(found, edit.name)
        yield Step("redefine", _redefinition(found, edit, moment, means.rng))
        goes_on = found.is_enabled and found.state not in CLOSED
        if edit.is_enabled is not None and edit.is_enabled is not goes_on:
            yield from _switch(found, is_enabled=edit.is_enabled)
        return (yield from _read(job_id))

    return Call(steps, wakes=lambda left: wakes.by_jobs([left]), deed=partial(_told_of, "edit schedule"))


def _told_of(action: str, job: Job) -> Deed:
    return Deed(action, f"job:{job.id}")


def _read(job_id: int) -> Steps[Job]:
    for job in rows.jobs((yield Step("get_jobs", {"ids": numbers([job_id])}))):
        return job
    raise JobNotFound(job_id)


def _rename(found: Job, name: str) -> Steps[None]:
    if (yield Step("rename_schedule", {"id": found.id, "name": name})):
        return
    for (holder,) in (yield Step("holder_of_name", {"name": name})):
        raise ScheduleExists(found.task, name, holder)
    raise StoreConflict(f"schedule {name!r} was deleted meanwhile")


def _redefinition(found: Job, edit: ScheduleEdit, moment: datetime, rng: Random) -> dict[str, Any]:
    rule = Recurrence.decode(found.cadence or "")
    wanted = rule if edit.cadence is None else replace(rule, cadence=edit.cadence)
    slot_at = None if wanted.keeps_time_of(rule) else wanted.first(moment)
    description = found.description if edit.description is None else edit.description or None
    changes = {"subject": edit.subject, "child_key": edit.child_key, "priority": edit.priority}
    return {
        **found_parts(found),
        **{name: value for name, value in changes.items() if value is not None},
        "cadence": wanted.encode(),
        "description": description,
        "id": found.id,
        "declared_by": None,
        "next_slot_at": slot_at,
        "next_at": None if slot_at is None else wanted.run_time(slot_at, rng),
    }


def _switch(found: Job, *, is_enabled: bool) -> Steps[None]:
    move = "enable" if is_enabled else "disable"
    changed = rows.ids((yield Step(move, {"ids": batches.numbers([found.id])})))
    # Refused, as the move by itself is, of a schedule that has ended.
    answer(move, [found.id], set(changed), [found]).one()
