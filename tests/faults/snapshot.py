"""The tables as they stand when everything has come to rest."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from windlass.core.job import CLOSED, JobState
from windlass.store.sqlite_library import sqlite_driver as driver

_LOCK = "hhqqi4x"
"""The kernel's description of a file lock: kind, whence, start, length, process."""
_WRITE_LOCK_BYTE = 120


class JobRow(NamedTuple):
    """A job; instants are microseconds since 1970."""

    id: int
    task: str
    state: str
    attempt: int
    executions: int
    crashes: int
    token: int | None
    worker: str | None
    is_recurring: bool
    is_template: bool
    unique_slot: str | None
    correlation_id: str | None
    run_at_us: int
    created_at_us: int
    held: bool = False
    max_attempts: int | None = None

    @property
    def is_over(self) -> bool:
        return self.state in CLOSED


class ExecutionRow(NamedTuple):
    """One recorded run."""

    job_id: int
    number: int
    token: int
    worker: str
    status: str
    reason: str | None
    started_at_us: int
    finished_at_us: int
    slot_at_us: int | None = None
    error: str | None = None


class LetterRow(NamedTuple):
    """One dead letter."""

    job_id: int
    is_closed: bool


@dataclass
class Snapshot:
    """What the judge sees of the database."""

    jobs: dict[int, JobRow] = field(default_factory=dict)
    executions: list[ExecutionRow] = field(default_factory=list)
    letters: list[LetterRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Jobs by state, as the database keeps them up."""
    problems: list[str] = field(default_factory=list)
    """What the doctor found."""
    now_us: int = 0


_JOBS = """
    select id, task, state, attempt, executions, crashes, token, worker, cadence is not null, spawn, unique_slot,
        correlation_id, {run_at}, {created_at}, held, max_attempts
    from windlass_jobs
"""
_EXECUTIONS = """
    select job_id, number, token, worker, status, reason, {started_at}, {finished_at}, {slot_at}, error
    from windlass_executions
    order by job_id, number
"""
_LETTERS = "select job_id, closed_at is not null from windlass_dead_letters"
_COUNTS = """
    select state, sum(jobs) from (
        select state, jobs from windlass_counts union all select state, jobs from windlass_count_deltas
    ) as both_halves group by state
"""
UNFINISHED = "select count(*) from windlass_jobs where cadence is null and (token is not null or state not in ({closed}))".format(
    closed=", ".join(f"'{JobState(state).value}'" for state in sorted(CLOSED))
)
_INSTANTS = ("run_at", "created_at", "started_at", "finished_at", "slot_at")


class Tables:
    """Reads the database directly, past the engine and past the proxies."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_sqlite = url.startswith("sqlite")

    def count_unfinished(self) -> int:
        """Count the one-shot jobs that are not over, and leases that nobody has given back."""
        [[count]] = self._read(UNFINISHED)
        return int(count)

    def read(self) -> Snapshot:
        """Read everything, at rest."""
        jobs = map(JobRow._make, self._read(_JOBS))
        [[now]] = self._read("select unixepoch('subsec')" if self._is_sqlite else "select extract(epoch from now())")
        return Snapshot(
            jobs={job.id: job for job in jobs},
            executions=[ExecutionRow(*row) for row in self._read(_EXECUTIONS)],
            letters=[LetterRow(row[0], bool(row[1])) for row in self._read(_LETTERS)],
            counts={state: int(jobs) for state, jobs in self._read(_COUNTS) if jobs},
            now_us=round(float(now) * 1e6),
        )

    def _read(self, query: str) -> Iterator[Sequence[Any]]:
        instants = {name: name if self._is_sqlite else f"(extract(epoch from {name}) * 1000000)::bigint" for name in _INSTANTS}
        with closing(self.connect()) as connection:
            yield from connection.execute(query.format(**instants)).fetchall()

    def writer(self) -> int | None:
        """Find the process that is inside a write to an SQLite file, which no other can write to meanwhile."""
        if not self._is_sqlite:
            return None
        # Never closed: with it would go the locks of every connection that this process has to the file.
        file = os.open(f"{self._path}-shm", os.O_RDWR)
        asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _WRITE_LOCK_BYTE, 1, 0)
        kind, *_, pid = struct.unpack(_LOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else pid

    @property
    def _path(self) -> str:
        return urlsplit(self._url).path.removeprefix("/")

    def connect(self) -> Any:
        """Open a connection of a stranger."""
        if self._is_sqlite:
            return driver.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        return psycopg.connect(self._url, autocommit=True)
