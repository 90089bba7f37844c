"""Every error Windlass raises.

```
WindlassError
├── ConfigError               a setting, URL or environment variable is wrong
├── InvalidInput              bad value from a caller; names the field and the value (a ValueError)
│   ├── InvalidPayload        a payload, result or metadata that is not strict JSON, or does not fit its task
│   └── UnknownTask           a task that neither this process nor the fleet has code for
├── JobNotFound
│   └── ScheduleNotFound      no recurring job has this name; names the nearest
├── JobNotCompleted           the awaited job has no result
│   ├── JobFailed
│   └── JobCancelled
├── WaitTimeout               the awaited job is not done yet (a TimeoutError)
├── ExecutionNotFound
├── InvalidTransition         a move the state table does not have; names both states
├── GateNotFound              a lane or task that no process declared and that has no jobs; names the nearest
├── ChoreNotFound             no chore of the upkeep has this name; names the nearest
├── WorkerNotFound            no worker of this name is registered, or it has stopped
├── MoveRefused               a whole database cannot be copied there, or not now; with the reason
├── SourceNotFound
├── ReminderNotFound
├── PageNotFound
├── FeedNotFound
├── TokenNotFound
├── LeaseLost                 the token is no longer the one on the row
│   └── TokenNeeded           the worker has held the job before and must name the run it means
├── LeaseHeld                 a job cannot be deleted or begin anew while its lease is held
├── DuplicateJob              on_conflict="reject" met a holder of the key
│   └── ScheduleExists        a schedule of this name is there already
├── SlotTaken                 an operator's retry, requeue, override or clone into a unique slot that another job holds
├── ScheduleTaken             a schedule's name belongs to another application
├── LetterNotFound
├── LetterGroupNotFound       no dead letter has this fingerprint
├── CanaryNotFound
├── CanaryRunning             these letters are being requeued with a canary already; names it
├── CanaryEnded               a canary requeue that is over cannot be called off
├── LetterSettled             a dead letter was acknowledged or closed before; names by whom or how
├── BreakerOpen               a circuit breaker holds its callers back; leaving a handler, it snoozes the job
├── Abandoned                 a worker gave up on a call in a thread (windlass.worker.threads)
├── NoThread                  the system starts no thread now, so the job was not run (windlass.worker.threads)
├── ChildNotStarted           no child process could be had, so the job was not run (windlass.worker.processes)
│   └── NoProcess             the system starts no process now
├── BadFrame                  a message between worker and child that is none, or is too long (windlass.worker.frames)
├── OutgoingError             a request of a pack was refused or not answered (windlass.packs.outgoing)
├── MailServerFailed          the mail server cannot be reached or reports a problem (windlass.packs.notify)
├── RemoteError               what a server answered a client over HTTP (windlass.remote)
│   ├── Unauthorized          no credentials, or none that are good
│   ├── Forbidden             the role does not allow it
│   ├── NotFound              nothing there, of a kind that has no error of its own
│   ├── Refused               any other refusal; trying again is not right
│   ├── TooManyRequests       after too many failed attempts; with the time to try again
│   └── ServerUnavailable     no answer, half an answer, or one that asks to try again
└── StoreError
    ├── StoreUnavailable      the database cannot be reached or is busy; trying again is right
    │   ├── CannotConnect     no connection could be made: its host, port, database and the cause
    │   ├── StoreBusy         no answer in the time the call may take
    │   └── RowsLocked        another transaction holds rows for too long; names which were left out and what went through
    ├── StoreRefused          the database refused the statement (constraint, bad text); trying again is not
    │   └── StoreConflict     a unique key was taken between look and write; the whole call may be tried again
    └── SchemaError           the tables are missing, too old, too new or edited
        ├── SchemaTooOld      migrations are missing: `windlass migrate`
        └── SchemaTooNew      a newer Windlass has migrated the database: upgrade this one
```
"""

from __future__ import annotations

import contextlib
import re
import sys
from datetime import datetime, timedelta
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any

from windlass.secret_names import is_secret, redact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_SHOWN = 80
_USER = re.compile(r"(?<=://)[^/?#\s@]*@")
"""The user and password of an address."""


def shown(value: object) -> str:
    """Render a value for a message, short enough for one log line; times as people write them, secrets left out."""
    try:
        text = _plain(value)
    except Exception:  # noqa: BLE001 - a value whose repr fails must not hide the error it is shown in
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, dict | list):
        value = redact(value)
    elif isinstance(value, str) and "://" in value:
        value = _USER.sub("…@", value)
    return repr(value.value if isinstance(value, Enum) else value)


def nearest(name: str, known: Iterable[str]) -> str:
    """Ask whether the most similar of the known names was meant, as the end of a message; empty where none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


class WindlassError(Exception):
    """Root of all errors raised by Windlass."""

    request_id: str | None = None
    """What a server's log calls the request, for an error that came over HTTP."""


class ConfigError(WindlassError):
    """A setting is missing, unknown or out of range."""


class InvalidInput(WindlassError, ValueError):
    """A caller's value is refused; nothing was written. The message leaves out what stands under a name that looks secret."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        # A job's error is shown to people who may not see its payload.
        got = "" if is_secret(field, value) else f" (got {shown(value)})"
        super().__init__(f"{field}: {reason}{got}")
        self.field = field
        self.value = value
        self.reason = reason


class InvalidPayload(InvalidInput):
    """A document is not strict JSON, too large or too deep."""


_PACK_OF = {
    "hello": "hello",
    "crawl": "crawl",
    "command": "command",
    "enqueue-stale": "staleness",
    **dict.fromkeys(("fetch_feed", "renew_websub", "websub_content"), "feeds"),
    **dict.fromkeys(("email", "webhook", "integration", "produce-reminders", "cleanup-jobs"), "notify"),
}
"""Which pack has a task that comes with Windlass."""


class UnknownTask(InvalidInput):
    """No process is known to have code for this task; `pack` names the pack that has it, for one that comes with Windlass."""

    def __init__(self, task: str, known: Iterable[str] = ()) -> None:
        """Suggest the nearest of the known names, or the pack that has the task."""
        remedy = "declare it, use lane 'pull' for outside workers, or set WINDLASS_ACCEPT_UNKNOWN"
        self.pack = _PACK_OF.get(task)
        if self.pack is not None:
            remedy = f"start `windlass worker --packs {self.pack}`, which has it, or declare a task of this name"
        super().__init__("task", task, f"is not registered{nearest(task, known)}; {remedy}")


class JobNotFound(WindlassError):
    """No job has this number."""

    def __init__(self, job_id: object) -> None:
        super().__init__(f"job {shown(job_id)} not found")
        self.job_id = job_id


class ScheduleNotFound(JobNotFound):
    """No recurring job has this name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        """Suggest the nearest of the known names."""
        super().__init__(name)
        self.args = (f"schedule {shown(name)} not found{nearest(name, known)}",)


class MoveRefused(WindlassError):
    """A database cannot be moved to this place, or not now."""


class SourceNotFound(WindlassError):
    """No source has this id."""

    def __init__(self, source_id: object) -> None:
        super().__init__(f"source {shown(source_id)} not found")
        self.source_id = source_id


class ReminderNotFound(WindlassError):
    """No reminder has this number."""

    def __init__(self, reminder_id: object) -> None:
        super().__init__(f"reminder {shown(reminder_id)} not found")
        self.reminder_id = reminder_id


class PageNotFound(WindlassError):
    """No crawled page has this number."""

    def __init__(self, page_id: object) -> None:
        super().__init__(f"page {shown(page_id)} not found")
        self.page_id = page_id


class FeedNotFound(WindlassError):
    """No feed has this number or this address."""

    def __init__(self, feed: object) -> None:
        super().__init__(f"feed {shown(feed)} not found")
        self.feed = feed


class TokenNotFound(WindlassError):
    """No token has this number."""

    def __init__(self, token_id: object) -> None:
        super().__init__(f"token {shown(token_id)} not found")
        self.token_id = token_id


class JobNotCompleted(WindlassError):
    """The job has ended without a result."""

    def __init__(self, job_id: int, state: str, reason: str | None) -> None:
        super().__init__(f"job {job_id} {state}" + (f": {reason}" if reason else ""))
        self.job_id = job_id
        self.reason = reason


class JobFailed(JobNotCompleted):
    """The job failed for good; `reason` is its last error, with its type.

    `traceback` is the stack trace of the last run as text, where it left one. `__cause__` is the error itself where it can be
    made again from its text: one of Python's own, or a class of a module that this process has imported, whose constructor
    takes the message. Nothing is imported for it.
    """

    def __init__(self, job_id: int, state: str, reason: str | None, traceback: str | None = None) -> None:
        super().__init__(job_id, state, reason)
        self.traceback = traceback
        self.__cause__ = rebuilt(reason, traceback)


def rebuilt(reason: str | None, traceback: str | None) -> Exception | None:
    """Make an error again from its type and message; None where that would not be the same error."""
    name, _, message = (reason or "").partition(": ")
    kind = _error_class(name, message, traceback)
    if kind is None:
        return None
    try:
        made = kind(*_arguments(kind, message))
        # The key of a KeyError may be one that its text does not make again.
        return made if str(made) == message or isinstance(made, KeyError) else None
    except Exception:  # noqa: BLE001 - a constructor of the application's may ask for anything and raise anything
        return None


def _error_class(name: str, message: str, traceback: str | None) -> type[Exception] | None:
    """Find the class whose full name the stack trace ends with; without a trace, one of Python's own."""
    if not name.isidentifier():
        return None
    if traceback is None:
        return _class_in("builtins", name) if message else None
    # Notes and suggestions may follow the error, its message may have more lines, and a long one is cut in its reason.
    line = re.escape(f"{name}: {message}".partition("\n")[0][:_COMPARED]) if message else f"{name}$"
    found = re.findall(rf"^((?:[^\s:]+\.)?){line}", traceback, re.MULTILINE)
    if not found:
        return None
    path = found[-1].removesuffix(".")
    if path:
        return _class_in(path, name)
    # A trace leaves out both of these modules; where both have the name, which one was meant cannot be known.
    own, pythons = _class_in("__main__", name), _class_in("builtins", name)
    return own or pythons if own is None or pythons is None or own is pythons else None


def _class_in(path: str, name: str) -> type[Exception] | None:
    """Look an exception up by the path of its module, or of the class it stands in, among what has been imported."""
    parts = path.split(".")
    end = next((end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in sys.modules), 0)
    found: object = sys.modules.get(".".join(parts[:end]))
    for part in (*parts[end:], name):
        # Not `getattr`: a module may import something when it is asked for a name that it does not have.
        found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


_COMPARED = 500
_OS_ERROR = re.compile(r"\[Errno (-?\d+)\] (.*?)(?:: ('.*?'|\".*?\"|b'.*?'))?(?: -> ('.*?'|\".*?\"|b'.*?'))?", re.DOTALL)


def _arguments(kind: type[Exception], message: str) -> tuple[object, ...]:
    """Read from a message what the error was made of."""
    import ast  # noqa: PLC0415 - rarely needed, and every program imports this module

    if not message:
        return ()
    if issubclass(kind, KeyError):
        # Its text is the repr of its key.
        with contextlib.suppress(ValueError, SyntaxError):
            return (ast.literal_eval(message),)
    if issubclass(kind, OSError) and (parts := _OS_ERROR.fullmatch(message)) is not None:
        number, text, *files = parts.groups()
        first, second = (None if file is None else ast.literal_eval(file) for file in files)
        return (int(number), text, *(() if first is None else (first,)), *(() if second is None else (None, second)))
    return (message,)


class JobCancelled(JobNotCompleted):
    """The job was cancelled."""


class WaitTimeout(WindlassError, TimeoutError):
    """The job was still open when the wait ended; it goes on."""

    def __init__(self, job_id: int, state: str) -> None:
        super().__init__(f"job {job_id} is still {state}")
        self.job_id = job_id
        self.state = state


class ExecutionNotFound(WindlassError):
    """The job has no such run, or no longer."""

    def __init__(self, job_id: int, number: int) -> None:
        super().__init__(f"job {job_id} has no execution {number}")
        self.job_id = job_id
        self.number = number


class GateNotFound(WindlassError):
    """No process declared the lane or task, and it has no jobs; `nearest` are known names that are spelled alike."""

    def __init__(self, kind: str, name: str, nearest: Collection[str] = (), *, may_force: bool = True) -> None:
        hint = f"did you mean {' or '.join(map(repr, nearest))}?" if nearest else "no known name is spelled like it"
        force = f"{'' if nearest else '.'} With force (--force, ?force=true) it is done all the same" if may_force else ""
        super().__init__(f"{kind} {shown(name)} not found: nothing has declared it and it has no jobs; {hint}{force}")
        self.kind = kind
        self.name = name
        self.nearest = tuple(nearest)


class ChoreNotFound(WindlassError):
    """No chore of the upkeep has this name."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(f"chore {shown(name)} not found{nearest(name, known)}; there are {', '.join(sorted(known))}")
        self.name = name


class WorkerNotFound(WindlassError):
    """No worker of this name is registered, or it has stopped."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"worker {shown(worker)} not found, or it has stopped; `windlass workers` lists those that are alive")
        self.worker = worker


class InvalidTransition(WindlassError):
    """The state table has no such move."""

    def __init__(self, job_id: int, move: str, state: str, target: str) -> None:
        what = _MOVES.get(move, f"{move} job {{}}").format(job_id)
        super().__init__(f"cannot {what}: {_why_not(move, state, target)}")
        self.job_id = job_id
        self.move = move
        self.state = state
        self.target = target


_MOVES = {"run now": "run job {} now", "set priority": "set the priority of job {}", "take lease": "take the lease of job {}"}
_OF_A_RUN = frozenset({"fail", "stop", "take lease"})


def _why_not(move: str, state: str, target: str) -> str:
    both = f"{state} → {target} is not a legal move"
    return f"it is not running ({both})" if move in _OF_A_RUN and state == target else both


class LeaseLost(WindlassError):
    """The caller no longer holds the job; nothing was changed."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"the lease on job {job_id} is held by somebody else or has ended")
        self.job_id = job_id


class TokenNeeded(LeaseLost):
    """The worker's name alone does not show which of its runs is meant; nothing was changed."""

    def __init__(self, job_id: int, worker: str) -> None:
        super().__init__(job_id)
        self.args = (f"worker {shown(worker)} has held job {job_id} before: say which run is meant by its attempt_id",)
        self.worker = worker


class LeaseHeld(WindlassError):
    """The job's lease is held, so it cannot be removed or begin anew; cancel it or take its lease first."""

    def __init__(self, job_id: int, worker: str | None, move: str = "delete") -> None:
        super().__init__(f"cannot {move} job {job_id}: {worker} holds its lease; cancel it or take the lease first")
        self.job_id = job_id
        self.worker = worker


class DuplicateJob(WindlassError):
    """The unique key is taken and the caller asked to be refused."""

    def __init__(self, task: str, key: str, holder: int) -> None:
        super().__init__(f"task {task!r} already has job {holder} with unique key {shown(key)}")
        self.task = task
        self.key = key
        self.holder = holder


class ScheduleExists(DuplicateJob):
    """A recurring job of this name is there already; nothing was changed."""

    def __init__(self, task: str, name: str, holder: int) -> None:
        super().__init__(task, name, holder)
        self.args = (f"schedule {shown(name)} exists already as job {holder}; choose another name",)


class SlotTaken(WindlassError):
    """Another job holds the unique slot this one would come back to."""

    def __init__(self, job_id: int, holder: int) -> None:
        super().__init__(f"job {job_id} cannot come back: job {holder} holds its unique key")
        self.job_id = job_id
        self.holder = holder


class BreakerOpen(WindlassError):
    """A circuit breaker holds its callers back until it is tried again."""

    def __init__(self, name: str, probe_at: datetime) -> None:
        super().__init__(f"breaker {name!r} is open; ask again at {probe_at.isoformat()}")
        self.name = name
        self.probe_at = probe_at


class ScheduleTaken(WindlassError):
    """Another application declares a schedule of this name."""

    def __init__(self, name: str, app: str) -> None:
        super().__init__(f"schedule {shown(name)} is declared by application {shown(app)}; choose another name")
        self.name = name
        self.app = app


class LetterNotFound(WindlassError):
    """No dead letter has this number."""

    def __init__(self, letter_id: object) -> None:
        super().__init__(f"dead letter {letter_id} not found")
        self.letter_id = letter_id


class LetterSettled(WindlassError):
    """What was asked of a dead letter was done before, or can no longer be done."""

    def __init__(self, letter_id: int, move: str, why: str) -> None:
        super().__init__(f"cannot {move} dead letter {letter_id}: {why}")
        self.letter_id = letter_id
        self.move = move
        self.why = why


class LetterGroupNotFound(WindlassError):
    """No dead letter has this fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        super().__init__(f"no dead letter has the fingerprint {shown(fingerprint)}; `windlass dead groups` lists those there are")
        self.fingerprint = fingerprint


class CanaryNotFound(WindlassError):
    """No canary requeue has this number."""

    def __init__(self, canary_id: object) -> None:
        super().__init__(f"canary {canary_id} not found; `windlass dead canaries` lists those there are")
        self.canary_id = canary_id


class CanaryRunning(WindlassError):
    """A canary requeue of the same letters is under way."""

    def __init__(self, canary_id: int) -> None:
        super().__init__(
            f"canary {canary_id} is under way for these letters; wait for it or end it: windlass dead canaries cancel {canary_id}"
        )
        self.canary_id = canary_id


class CanaryEnded(WindlassError):
    """A canary requeue is over."""

    def __init__(self, canary_id: int, state: str) -> None:
        super().__init__(f"cannot cancel canary {canary_id}: it is {state}")
        self.canary_id = canary_id
        self.state = state


class RemoteError(WindlassError):
    """A server answered with an error; the message is the server's."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Unauthorized(RemoteError):
    """The server accepts no credential of this request; pass a valid token."""


class Forbidden(RemoteError):
    """The token's role does not allow it."""


class NotFound(RemoteError):
    """There is nothing of this name."""


class Refused(RemoteError):
    """The server refused the request and would refuse it again."""


class TooManyRequests(RemoteError):
    """Too many attempts have failed; `retry_after` is how many seconds to wait."""

    retry_after: float = 1.0


class ServerUnavailable(RemoteError):
    """The server cannot be reached, went away or cannot answer now; whether the request had an effect is not known."""


class StoreError(WindlassError):
    """The database answered with an error."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is shutting down or stayed locked."""


class CannotConnect(StoreUnavailable):
    """No connection to the database could be made; nothing was asked of it."""


class StoreBusy(StoreUnavailable):
    """The database did not answer in the time the call may take; what it was asked may still have been done."""


class RowsLocked(StoreUnavailable):
    """Another transaction holds jobs, or keys they need; what was left out is to be tried again later."""

    def __init__(self, text: str, ids: Collection[int] = (), accepted: Mapping[int, Any] | None = None) -> None:
        """Name the jobs that were left out, where that is known, and those that went through with the state of each."""
        super().__init__(text)
        self.ids = frozenset(ids)
        self.accepted = accepted or {}


class StoreRefused(StoreError):
    """The database refused this statement and would refuse it again."""


class StoreConflict(StoreRefused):
    """Another transaction took a unique key between this call's read and its write."""


class SchemaError(StoreError):
    """The schema does not fit this version of Windlass."""


class SchemaTooOld(SchemaError):
    """Migrations of this version are missing."""


class SchemaTooNew(SchemaError):
    """The database has migrations that this version does not know."""
