"""Batches as one JSON text, joined from prepared pieces; keys without a value are left out."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.cadence import EPOCH
from windlass.core.job import DEFAULT_RETRY, NewJob
from windlass.core.outcome import Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from windlass.core.outcome import Ending, Finish, Run

_DAY = 86_400_000_000

MAX_ROWS = 500
MAX_BYTES = 4 * 1024 * 1024

# A JSON string, quotes included, without turning other scripts into escapes.
quote: Callable[[str], str] = encode_basestring
_quoted_name = lru_cache(maxsize=4096)(quote)


def microseconds(value: datetime | timedelta) -> int:
    """Count microseconds: of a duration, or of an instant since the epoch."""
    delta = value - EPOCH if isinstance(value, datetime) else value
    return delta.days * _DAY + delta.seconds * 1_000_000 + delta.microseconds


@lru_cache(maxsize=4096)
def instant(since_epoch: int) -> datetime:
    """Read microseconds since the epoch; the rows of one batch share most of theirs."""
    return EPOCH + timedelta(microseconds=since_epoch)


END_OF_TIME = EPOCH.replace(year=9999)


def kept_instant(since_epoch: int) -> datetime:
    """Read microseconds that a caller sent, held between the epoch and the end of time."""
    return instant(min(max(since_epoch, 0), microseconds(END_OF_TIME)))


def array(items: Iterable[str]) -> str:
    """Join documents into one array."""
    return f"[{','.join(items)}]"


def numbers(ids: Iterable[int]) -> str:
    """Write job numbers as an array."""
    return array(map(str, ids))


class BatchEntry(NamedTuple):
    """One element of a batch: what it shares with its like, without the closing brace, and what is its own."""

    shared: str
    own: str


def cut(sizes: Sequence[int], rows: int = MAX_ROWS) -> Iterator[slice]:
    """Cut elements of these sizes into runs that are small enough for one statement."""
    start = total = 0
    for place, size in enumerate(sizes):
        total += size
        if place > start and (place - start >= rows or total > MAX_BYTES):
            yield slice(start, place)
            start, total = place, size
    if sizes:
        yield slice(start, len(sizes))


def grouped(entries: Iterable[BatchEntry]) -> str:
    """Write entries as groups of their like, in any order."""
    groups: dict[str, list[str]] = {}
    for entry in entries:
        groups.setdefault(entry.shared, []).append(entry.own)
    return array(f'{shared},"rows":[{",".join(own)}]}}' for shared, own in groups.items())


def in_order(entries: Iterable[BatchEntry]) -> str:
    """Write entries as groups of neighbours that are alike: their order is the order of their numbers."""
    texts = []
    place = 0
    for shared, group in groupby(entries, attrgetter("shared")):
        own = [entry.own for entry in group]
        texts.append(f'{shared},"ord":{place},"rows":[{",".join(own)}]}}')
        place += len(own)
    return array(texts)


_JOB_JSON = ("metadata", "item_key")
_JOB_TEXTS = tuple(one.name for one in fields(NewJob) if one.type == "str | None" and one.name not in _JOB_JSON)
_JOB_VALUES = (*(one.name for one in fields(NewJob) if one.type == "int | None"), *_JOB_JSON)


def plain_size(payload: str) -> int:
    """Return about how long a job with nothing but this payload is once it is written."""
    return 100 + len(payload)


def job_size(job: NewJob) -> int:
    """Return about how long a job is once it is written."""
    if job.is_plain:
        return plain_size(job.payload)
    return 1000 + sum(len(text) for text in (job.payload, job.metadata, job.description) if text is not None)


def new_job(job: NewJob) -> BatchEntry:
    """Write a job to enqueue."""
    shared = f'{{"task":{_quoted_name(job.task)},"lane":{_quoted_name(job.lane)}'
    if job.priority:
        shared += f',"priority":{job.priority}'
    if job.retry is not DEFAULT_RETRY:
        shared += f',"retry":{quote(job.retry.encode())}'
    if not job.is_plain:
        shared += _details(job)
    return BatchEntry(shared, job.payload)


def _details(job: NewJob) -> str:
    parts = [when(job.run_at, job.delay)]
    if job.slot_at is not None:
        parts.append(f',"slot_us":{microseconds(job.slot_at)}')
    for field in _JOB_TEXTS:
        text = getattr(job, field)
        if text is not None:
            parts.append(f',"{field}":{quote(text)}')
    for field in _JOB_VALUES:
        value = getattr(job, field)
        if value is not None:
            parts.append(f',"{field}":{value}')
    if job.unique_key is not None:
        parts.append(f',"unique_scope":"{job.unique_scope}"')
    if job.timeout is not None:
        parts.append(f',"timeout_us":{microseconds(job.timeout)}')
    if job.recurrence is not None:
        parts.append(f',"cadence":{quote(job.recurrence.encode())},"spawn":{"true" if job.spawn else "false"}')
    return "".join(parts)


def when(run_at: datetime | None, delay: timedelta | None) -> str:
    """Write a due time: an instant, or a wait counted by the database."""
    if run_at is not None:
        return f',"run_us":{microseconds(run_at)}'
    return "" if delay is None else f',"delay_us":{microseconds(delay)}'


def size(ending: Ending) -> int:
    """Return about how long an ending is once it is written."""
    if isinstance(ending, Completed):
        return 100 if ending.result is None else 100 + len(ending.result)
    texts = [ending.result, ending.run.log_excerpt, ending.run.metadata]
    if ending.failure is not None:
        texts += [ending.failure.message, ending.failure.trace]
    return 1000 + sum(len(text) for text in texts if text is not None)


def completed(endings: Sequence[Completed]) -> dict[str, Sequence[Any]]:
    """Write ends with nothing to decide as columns."""
    ids, tokens, _, started, finished, cpu_times, results = zip(*endings, strict=True)
    return {
        "id": ids,
        "token": tokens,
        "started_us": started,
        "finished_us": finished,
        "cpu_time_ms": cpu_times,
        "result": results,
    }


def finish(ending: Finish) -> BatchEntry:
    """Write one decided ending."""
    run = ending.run
    own = f'{{"id":{ending.id},"token":{ending.token}{_times(run)}'
    own += "}" if ending.result is None else f',"result":{ending.result}}}'
    shared = _counters(*ending[2:9], ending.status, ending.reason)
    if ending.failure is None and ending.wait_reason is None and run.is_bare and ending.done_reason is None:
        return BatchEntry(shared, own)
    return BatchEntry(f"{shared}{_content(ending)}", own)


@lru_cache(maxsize=4096)
def _counters(  # noqa: PLR0917 - the fields in their order; cached, because most endings are alike
    state: str,
    attempt: int,
    executions: int,
    crashes: int,
    consecutive_failures: int,
    completed_runs: int,
    wait_reason: str | None,
    status: str | None,
    reason: str | None,
) -> str:
    text = (
        f'{{"state":"{state}","attempt":{attempt},"executions":{executions},"crashes":{crashes},'
        f'"consecutive_failures":{consecutive_failures},"completed_runs":{completed_runs}'
    )
    for field, value in (("wait_reason", wait_reason), ("status", status), ("reason", reason)):
        if value is not None:
            text += f',"{field}":"{value}"'
    return text


def _content(ending: Finish) -> str:
    parts = [when(ending.run_at, ending.delay), _measured(ending.run)]
    if ending.slot_at is not None:
        parts.append(f',"slot_us":{microseconds(ending.slot_at)}')
    if ending.failure is not None:
        parts.append(f',"error":{quote(ending.failure.message)},"error_type":{quote(ending.failure.kind)}')
        if ending.failure.trace is not None:
            parts.append(f',"stack_trace":{quote(ending.failure.trace)}')
    if ending.fingerprint is not None:
        parts.append(f',"fingerprint":{quote(ending.fingerprint)}')
    if ending.done_reason is not None:
        parts.append(f',"done_reason":{quote(ending.done_reason)}')
    return "".join(parts)


def report(job_id: int, token: int, run: Run) -> str:
    """Write what a worker reports of a run that has not been decided: that it goes on, or that it has stopped."""
    return f'{{"id":{job_id},"token":{token}{_times(run)}{_measured(run)}}}'


def _times(run: Run) -> str:
    started = "" if run.started_at is None else f',"started_us":{microseconds(run.started_at)}'
    return started if run.finished_at is None else f'{started},"finished_us":{microseconds(run.finished_at)}'


def _measured(run: Run) -> str:
    parts = []
    if run.log_excerpt is not None:
        parts.append(f',"log_excerpt":{quote(run.log_excerpt)}')
    if run.metadata is not None:
        parts.append(f',"metadata":{run.metadata}')
    for field, value in (
        ("cpu_time_ms", run.cpu_time_ms),
        ("memory_peak_mb", run.memory_peak_mb),
        ("items_crawled", run.items_crawled),
        ("items_indexed", run.items_indexed),
    ):
        if isinstance(value, int):
            # By the digits, whatever text a handler's own kind of number makes of itself.
            parts.append(f',"{field}":{int.__repr__(value)}')
    return "".join(parts)
