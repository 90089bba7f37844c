"""Several stores side by side, each spoken to in the model's numbers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import fields, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import sql

from tests.model.gates import GATED, SPEC, Holder, Switch
from tests.model.model import Clones, Letter, LetterAt, Moves, Progress, Row, Settles, Told
from tests.model.verdict import PastRun
from tests.store.builders import all_jobs
from windlass.core.breaker import Breaker
from windlass.core.contact import Contact
from windlass.core.gate import Gate, GateKind
from windlass.core.item import Added
from windlass.core.job import (
    CLOSED,
    Claimed,
    DeadLetter,
    Edit,
    Enqueued,
    Held,
    Job,
    JobState,
    Lease,
    NewJob,
    Promoted,
    Slices,
    WaitReason,
)
from windlass.core.known_task import DeclaredTask
from windlass.core.letters import Settled
from windlass.core.outcome import Finish, Run
from windlass.core.report import Report, ReportAnswer
from windlass.core.retention import Pruned, Retention
from windlass.core.transitions import Moved
from windlass.errors import StoreUnavailable, WindlassError
from windlass.store import Store
from windlass.store.calls import override
from windlass.store.calls.call import Call
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock

T = TypeVar("T")
History = tuple[list[dict[str, Any]], list[dict[str, Any]]]
# Those that a migration filled, and the one that nobody may empty; nothing here is audited.
KEPT = ("windlass_gates", "windlass_schema", "windlass_audit", "windlass_contact")
UNKNOWN = 10**12
"""A number no store gives out."""
_PERMIT = ("probe", "last_probe")
_FIELD_OF = {field.name.removesuffix("_json"): field.name for field in fields(Job)}
_COMPARED = [field.name for field in fields(Row) if field.name in _FIELD_OF]


class Refusal(NamedTuple):
    """What a verb raised."""

    kind: str


class View(NamedTuple):
    """All that a store has, in the model's numbers."""

    jobs: list[Job]
    counts: Counter[tuple[str, str, JobState, WaitReason | None]]


class Silence:
    """A database that cannot be reached."""

    dialect = "none"

    async def run(self, call: Call[T]) -> T:
        """Fail before anything is sent."""
        raise StoreUnavailable(f"no answer to {call}")

    async def run_within(self, _connection: object, call: Call[T]) -> T:
        """Fail in the same way."""
        return await self.run(call)

    def listen(self, wakeups: object, rng: object) -> AbstractAsyncContextManager[None]:
        """Hear nothing."""
        del wakeups, rng
        return nullcontext()

    async def aclose(self) -> None:
        """Nothing is open."""


class Drawn(Random):
    """Chance that draws one token."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self._token = token

    def getrandbits(self, _bits: int, /) -> int:
        return self._token


class Side:
    """One store. Numbers may have gaps that differ between stores, but they grow in the same order."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self._clock = FakeClock()
        self.store = store.at(self._clock)
        self._theirs: dict[int, int] = {}
        self._ours: dict[int, int] = {}
        self._letters: dict[LetterAt, int] = {}

    def forget(self) -> None:
        """Start over with an empty store."""
        self._theirs.clear()
        self._ours.clear()
        self._letters.clear()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Let the database be unreachable for a while."""
        database = self.store.database
        self.store.database = Silence()
        try:
            yield
        finally:
            self.store.database = database

    def at(self, now: datetime) -> Store:
        """Return the store, at this time."""
        self._clock.move_to(now)
        return self.store

    def _sent(self, numbers: Sequence[int]) -> list[int]:
        return [self._theirs.get(number, number) for number in numbers]

    def _adopt(self, answers: Sequence[Enqueued]) -> list[Enqueued]:
        for job_id in sorted({answer.id for answer in answers} - self._ours.keys()):
            number = len(self._ours) + 1
            self._ours[job_id], self._theirs[number] = number, job_id
        return [answer._replace(id=self._ours[answer.id]) for answer in answers]

    async def enqueue(self, jobs: Sequence[NewJob], now: datetime) -> list[Enqueued]:
        return self._adopt(await self.at(now).enqueue(jobs))

    async def spawn(self, limit: int, now: datetime) -> list[Enqueued]:
        return self._adopt(await self.at(now).spawn(limit))

    async def claim(self, slices: Slices, limit: int, lease: Lease, *, started: bool, now: datetime) -> list[Claimed]:
        return [self._own_claim(job) for job in await self.at(now).claim(slices, limit, lease, started=started)]

    async def claim_suspect(self, slices: Slices, lease: Lease, now: datetime) -> Claimed | None:
        jobs = await self.at(now).claim_suspects(slices, 1, lease)
        return self._own_claim(jobs[0]) if jobs else None

    async def claim_probe(self, slices: Slices, lease: Lease, now: datetime) -> Claimed | None:
        job = await self.at(now).claim_probe(slices, SPEC.name, lease)
        return None if job is None else self._own_claim(job)

    async def pull(self, slices: Slices, lease: Lease, pull_id: str | None, now: datetime) -> Claimed | None:
        job = await self.at(now).pull(slices, lease, pull_id)
        return None if job is None else self._own_claim(job)

    def _own_claim(self, job: Claimed) -> Claimed:
        return job._replace(id=self._ours[job.id], parent_id=self._parent(job.parent_id))

    async def declare(self, now: datetime) -> None:
        await self.at(now).tasks.declare([DeclaredTask(name=GATED, breaker=SPEC.name)])

    async def pause_gate(self, kind: GateKind, name: str, now: datetime) -> Gate:
        store = self.at(now)
        gates = store.lanes if kind is GateKind.LANE else store.tasks
        return await gates.pause(name)

    async def resume_gate(self, kind: GateKind, name: str, now: datetime) -> Gate:
        store = self.at(now)
        gates = store.lanes if kind is GateKind.LANE else store.tasks
        return await gates.resume(name)

    async def force_open(self, for_: timedelta | None, now: datetime) -> Switch | None:
        return self._own_switch(await self.at(now).breakers.force_open(SPEC.name, for_))

    async def reset_breaker(self, now: datetime) -> Switch | None:
        return self._own_switch(await self.at(now).breakers.reset(SPEC.name))

    async def get_breaker(self, now: datetime) -> Switch | None:
        return self._own_switch(await self.at(now).breakers.get(SPEC.name))

    async def record(self, holder: Holder, now: datetime, *, succeeded: bool, failures: int) -> str:
        return await self.at(now).breakers.record(
            SPEC, succeeded=succeeded, failures=failures, job_id=self._job_of(holder), token=holder.token
        )

    async def admit(self, holder: Holder, now: datetime) -> tuple[bool, bool, datetime | None, int | None]:
        found = await self.at(now).breakers.admit(SPEC, job_id=self._job_of(holder), token=holder.token)
        return found.is_admitted, found.is_probe, found.probe_at, found.token

    def _job_of(self, holder: Holder) -> int | None:
        return None if holder.job is None else self._theirs[holder.job]

    def _own_switch(self, breaker: Breaker | None) -> Switch | None:
        if breaker is None:
            return None
        plain = {field.name: getattr(breaker, field.name) for field in fields(Switch) if field.name not in _PERMIT}
        last, probe = breaker.last_probe_job_id, breaker.probe
        held = Holder(None if probe.job_id is None else self._ours[probe.job_id], probe.token)
        return Switch(**plain, probe=held, last_probe=None if last is None else self._ours[last])

    async def age(self, now: datetime) -> int:
        return await self.at(now).age()

    async def prune(self, rules: Retention, now: datetime) -> Pruned:
        return await self.at(now).retention.prune(rules)

    async def renew(self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta, now: datetime) -> list[Held]:
        sent = [(self._theirs[number], token, started_at) for number, token, started_at in leases]
        held = await self.at(now).renew(sent, length)
        return sorted(lease._replace(id=self._ours[lease.id]) for lease in held)

    async def progress(self, step: Progress, now: datetime) -> None:
        await self.at(now).progress(self._theirs[step.id], step.token, count=step.done, cursor=step.cursor)

    async def add_items(self, number: int, token: int, phones: Sequence[str], now: datetime) -> Added:
        return await self.at(now).items.add(self._theirs[number], token, [{"phone": phone} for phone in phones])

    async def report(self, told: Report, now: datetime) -> ReportAnswer:
        return await self.at(now).report(replace(told, job_id=self._theirs[told.job_id]))

    async def finish(self, endings: Sequence[Finish], now: datetime) -> dict[int, JobState]:
        accepted = await self.at(now).finish([ending._replace(id=self._theirs[ending.id]) for ending in endings])
        return {self._ours[job_id]: state for job_id, state in accepted.items()}

    async def stop(self, told: Sequence[Told], now: datetime) -> list[int]:
        sent = [(self._theirs[number], token, Run(started_at=started_at)) for number, token, started_at in told]
        return sorted(self._ours[job_id] for job_id in await self.at(now).stop(sent))

    async def reclaim(self, limit: int, now: datetime, contact: Contact | None = None) -> list[int]:
        return sorted(self._ours[job_id] for job_id in await self.at(now).reclaim(contact, limit=limit))

    async def promote(self, limit: int, now: datetime) -> Promoted:
        return await self.at(now).promote(limit)

    async def move(self, verb: str, ids: Sequence[int], now: datetime, **options: Any) -> Moves:
        """Let an operator move jobs, by the name of the verb."""
        move: Callable[..., Awaitable[Moved]] = getattr(self.at(now), verb)
        return self._moves(await move(self._sent(ids), **options))

    async def override_status(self, ids: Sequence[int], now: datetime, status: JobState, lease: Lease) -> Moves:
        """Override with a token that all sides share, which the store would draw by itself."""
        by = lease.worker.removeprefix("operator:")
        call = override.override_status(self._sent(ids), status, by=by, lease_length=lease.length)
        store = self.at(now)
        return self._moves(await Store(store.database, store.means._replace(rng=Drawn(lease.token))).run(call))

    async def clone(self, ids: Sequence[int], now: datetime) -> Clones:
        moved = await self.at(now).clone(self._sent(ids))
        new = self._adopt([Enqueued(job.id) for job in moved.changed])
        made = {self._ours[job.parent_id or 0]: one.id for job, one in zip(moved.changed, new, strict=True)}
        moves = self._moves(moved._replace(changed=()))
        return Clones(made, moves.refused, moves.missing)

    async def acknowledge(self, letters: Sequence[LetterAt], now: datetime, by: str) -> Settles:
        ids = await self._letter_ids(letters)
        return self._settles(ids, await self.at(now).letters.acknowledge(list(ids), by=by, note="seen"))

    async def requeue(self, letters: Sequence[LetterAt], now: datetime) -> Settles:
        ids = await self._letter_ids(letters)
        return self._settles(ids, await self.at(now).letters.requeue(list(ids)))

    async def _letter_ids(self, letters: Sequence[LetterAt]) -> dict[int, LetterAt]:
        """Find letters by their place, and remember them: their job may be gone when they are asked for again."""
        for place in letters:
            found = await self.store.list_dead_letters(self._theirs[place.job])
            if place.place < len(found):
                self._letters[place] = found[place.place].id
        return {self._letters[place]: place for place in letters}

    def _settles(self, ids: dict[int, LetterAt], settled: Settled) -> Settles:
        changed, refused = (sorted(ids[letter.id] for letter in found) for found in (settled.changed, settled.refused))
        return Settles(
            changed, refused, [ids[number] for number in settled.missing], sorted(self._ours[job.id] for job in settled.jobs)
        )

    async def edit(self, number: int, changes: Edit, now: datetime) -> Moves:
        return self._moves(await self.at(now).edit(self._theirs[number], changes))

    def _moves(self, moved: Moved) -> Moves:
        changed, refused = ([self._ours[job.id] for job in jobs] for jobs in (moved.changed, moved.refused))
        return Moves(changed, refused, [self._ours.get(number, number) for number in moved.missing])

    def _own(self, job: Job) -> Job:
        return replace(
            job,
            id=self._ours[job.id],
            parent_id=self._parent(job.parent_id),
            unique_key=self._own_key(job.unique_key),
            unique_slot=self._own_key(job.unique_slot),
            created_by=self._own_maker(job.created_by),
        )

    def _parent(self, job_id: int | None) -> int | None:
        return None if job_id is None else self._ours[job_id]

    def _own_key(self, key: str | None) -> str | None:
        """Translate the key a template gives its jobs when it was not told one: it names the template."""
        if key is None or "@" not in key:
            return key
        template, _, slot = key.partition("@")
        return f"{self._ours[int(template)]}@{slot}"

    def _own_maker(self, maker: str | None) -> str | None:
        prefix, _, template = (maker or "").partition(":")
        return f"{prefix}:{self._ours[int(template)]}" if template.isdecimal() else maker

    async def look(self) -> View:
        """Read every job, and how many the store says there are."""
        counts = Counter({count[:4]: count.jobs for count in await self.store.count_jobs()})
        return View([self._own(job) for job in await all_jobs(self.store)], counts)

    async def slices(self, now: datetime) -> Slices:
        found = await self.at(now).slices()
        return found._replace(open=tuple(sorted(found.open)), suspects=tuple(sorted(found.suspects)))

    async def history(self, number: int) -> History:
        """Read a job's executions, oldest first, and its dead letters."""
        runs = [run for run in await self.store.list_executions(self._theirs[number]) if run.finished_at is not None]
        letters = await self.store.list_dead_letters(self._theirs[number])
        return [_only(run, PastRun) for run in reversed(runs)], [self._own_letter(letter) for letter in letters]

    def _own_letter(self, letter: DeadLetter) -> dict[str, Any]:
        kept = letter.original_job
        assert kept["id"] == letter.job_id
        assert kept["task"] == letter.task
        return _only(letter, Letter)


def _only(record: object, kind: type[PastRun | Letter]) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(kind)}


class Bench:
    """The stores under test, asked the same things and held to the same answers."""

    def __init__(self, runner: asyncio.Runner, sides: Sequence[Side], empty: Callable[[], None]) -> None:
        self._runner = runner
        self.sides = sides
        self._empty = empty

    def reset(self) -> None:
        """Empty every store."""
        self._empty()
        for side in self.sides:
            side.forget()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Let no store be reachable for a while."""
        with ExitStack() as stack:
            for side in self.sides:
                stack.enter_context(side.outage())
            yield

    def each(self, ask: Callable[[Side], Awaitable[T]]) -> list[T | Refusal]:
        """Ask every store, and collect what each answered or refused."""
        return self._runner.run(self._each(ask))

    async def _each(self, ask: Callable[[Side], Awaitable[T]]) -> list[T | Refusal]:
        return await asyncio.gather(*(_attempt(ask, side) for side in self.sides))

    def ask(self, ask: Callable[[Side], Awaitable[T]]) -> T | Refusal:
        """Ask every store; they must agree."""
        answers = self.each(ask)
        for side, answer in zip(self.sides, answers, strict=True):
            assert answer == answers[0], f"{side.name} answers {answer}, {self.sides[0].name} {answers[0]}"
        return answers[0]


async def _attempt(ask: Callable[[Side], Awaitable[T]], side: Side) -> T | Refusal:
    try:
        return await ask(side)
    except WindlassError as error:
        return Refusal(type(error).__name__)


def attempt(verb: Callable[[], T]) -> T | Refusal:
    """Ask the model in the same way."""
    try:
        return verb()
    except WindlassError as error:
        return Refusal(type(error).__name__)


def differences(row: Row, job: Job) -> dict[str, tuple[Any, Any]]:
    """List what a store's row should be and is not."""
    found = {name: (getattr(row, name), getattr(job, _FIELD_OF[name])) for name in _COMPARED}
    if row.state not in CLOSED:
        # A recurring job keeps the done_reason of its last run, or `ended` when run-now brought it back: reported, SPEC silent.
        del found["done_reason"]
    if row.state is JobState.RUNNING:
        found["started_at"] = (row.run_started_at, job.started_at)
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}


def empty_postgres(connection: psycopg.Connection[Any]) -> None:
    """Empty every table but those that are kept."""
    found = connection.execute("select tablename from pg_tables where tablename like 'windlass\\_%'").fetchall()
    tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in found if name not in KEPT)
    connection.execute(sql.SQL("truncate {} restart identity").format(tables))
    connection.execute("alter sequence windlass_job_ids restart")
    connection.execute("update windlass_gates set version = 1")


def empty_sqlite(database: object) -> None:
    """Do the same to a SQLite database; others are left alone."""
    if isinstance(database, Sqlite):
        database.run_script(_delete_all)


def _delete_all(connection: Any) -> None:
    found = connection.execute("select name from sqlite_master where type = 'table' and name like 'windlass~_%' escape '~'")
    for (name,) in found.fetchall():
        if name not in KEPT:
            connection.execute(f"delete from {name}")
    connection.execute("update windlass_gates set version = 1")
    # The counts are kept by triggers, which have just counted the deletions.
    for name in ("windlass_counts", "windlass_count_deltas", "sqlite_sequence"):
        connection.execute(f"delete from {name}")
