"""The verbs of the nouns beside jobs, each described once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from windlass.core.durations import Duration
from windlass.core.explanation import Explanation
from windlass.core.finding import Examination, Finding
from windlass.core.letter_page import LetterStatus
from windlass.http_client import records
from windlass.http_client.ask import API, Ask, as_list, as_one, get, post, seconds, word

T = TypeVar("T")
_LETTERS = f"{API}/dead-letters"
_CANARIES = f"{_LETTERS}/canaries"
_BREAKERS = f"{API}/breakers"


class RemoteLetterFilter(TypedDict, total=False):
    """Which dead letters a list shows; what is left out does not restrict it."""

    status: LetterStatus | Literal["open", "acknowledged", "closed"]
    task: str
    fingerprint: str
    since: datetime
    """Died at this time or later."""


def letter_page(
    *, limit: int = 50, cursor: str | None = None, **wanted: Unpack[RemoteLetterFilter]
) -> Ask[records.DeadLetterPage]:
    """Read a page of dead letters, newest death first."""
    return get(_LETTERS, as_one(records.DeadLetterPage), {**wanted, "limit": limit, "cursor": cursor})


def get_letter(letter_id: int) -> Ask[records.RemoteDeadLetter]:
    """Read one dead letter with the job as it was; raises LetterNotFound."""
    return get(f"{_LETTERS}/{word(letter_id)}", as_one(records.RemoteDeadLetter))


def group_letters(
    *, is_open: bool | None = None, is_new: bool | None = None, limit: int = 50
) -> Ask[list[records.RemoteLetterGroup]]:
    """Group the newest dead letters by what killed the jobs; new are those of the application's newest version."""
    query = {"open": _truth(is_open), "new": _truth(is_new), "limit": limit}
    return get(f"{_LETTERS}/groups", as_list("groups", records.RemoteLetterGroup), query)


def _truth(value: object) -> str | None:
    return None if value is None else str(value).lower()


def count_letters() -> Ask[records.RemoteLetterCounts]:
    """Count the letters of the last hour, day and week, and those that were not dealt with."""
    return get(f"{_LETTERS}/counts", as_one(records.RemoteLetterCounts))


def edit_letter(letter_id: int, payload: Mapping[str, Any]) -> Ask[records.RemoteDeadLetter]:
    """Change what the job of an open letter comes back with; the payload it died with is kept."""
    path, body = f"{_LETTERS}/{word(letter_id)}/payload", {"payload": dict(payload)}
    return Ask(method="PUT", path=path, read=as_one(records.RemoteDeadLetter), body=body, is_repeatable=True)


def add_note(letter_id: int, text: str) -> Ask[records.RemoteDeadLetter]:
    """Add a note to a letter."""
    return post(f"{_LETTERS}/{word(letter_id)}/notes", as_one(records.RemoteDeadLetter), {"text": text})


def requeue_group(fingerprint: str, *, dry_run: bool = False) -> Ask[records.RemoteBulk]:
    """Bring back the jobs of every open letter of one kind; raises LetterGroupNotFound."""
    return post(f"{_LETTERS}/groups/{word(fingerprint)}/requeue", as_one(records.RemoteBulk), {"dry_run": dry_run})


def start_canary(*, size: int, task: str | None = None, fingerprint: str | None = None) -> Ask[records.RemoteCanary]:
    """Bring back the first `size` open letters that fit; the others follow once those have succeeded."""
    body = {"size": size, "filter": _chosen(None, task, fingerprint)["filter"]}
    return post(_CANARIES, as_one(records.RemoteCanary), body)


def list_canaries(*, is_active: bool | None = None, limit: int = 50) -> Ask[list[records.RemoteCanary]]:
    """Read canary requeues, the newest first."""
    query = {"active": _truth(is_active), "limit": limit}
    return get(_CANARIES, as_list("canaries", records.RemoteCanary), query)


def get_canary(canary_id: int) -> Ask[records.RemoteCanary]:
    """Read one canary requeue; raises CanaryNotFound."""
    return get(f"{_CANARIES}/{word(canary_id)}", as_one(records.RemoteCanary))


def cancel_canary(canary_id: int) -> Ask[records.RemoteCanary]:
    """Leave the letters that were not brought back yet where they are; raises CanaryEnded."""
    return post(f"{_CANARIES}/{word(canary_id)}/cancel", as_one(records.RemoteCanary))


def acknowledge(letter_id: int, note: str | None = None) -> Ask[records.RemoteDeadLetter]:
    """Acknowledge a letter; raises LetterSettled when it was acknowledged before."""
    return post(f"{_LETTERS}/{word(letter_id)}/acknowledge", as_one(records.RemoteDeadLetter), {"note": note})


def requeue(letter_id: int) -> Ask[records.RemoteDeadLetter]:
    """Bring a dead job back with a fresh start and close its letter; raises LetterSettled or SlotTaken."""
    return post(f"{_LETTERS}/{word(letter_id)}/requeue", as_one(records.RemoteDeadLetter))


def acknowledge_many(
    *,
    ids: Sequence[int] | None = None,
    task: str | None = None,
    fingerprint: str | None = None,
    note: str | None = None,
    dry_run: bool = False,
) -> Ask[records.RemoteBulk]:
    """Acknowledge letters by number, or every one that is not closed and fits; nothing named means all of those."""
    body = {**_chosen(ids, task, fingerprint), "note": note, "dry_run": dry_run}
    return post(f"{_LETTERS}/acknowledge", as_one(records.RemoteBulk), body)


def requeue_many(
    *, ids: Sequence[int] | None = None, task: str | None = None, fingerprint: str | None = None, dry_run: bool = False
) -> Ask[records.RemoteBulk]:
    """Bring back the jobs of letters by number, or of every one that is not closed and fits."""
    return post(f"{_LETTERS}/requeue", as_one(records.RemoteBulk), {**_chosen(ids, task, fingerprint), "dry_run": dry_run})


def _chosen(ids: Sequence[int] | None, task: str | None, fingerprint: str | None) -> dict[str, Any]:
    wanted = {name: value for name, value in (("task", task), ("fingerprint", fingerprint)) if value is not None}
    if ids is None:
        return {"filter": wanted}
    # Both together are refused by the server: it cannot know which was meant.
    return {"ids": list(ids), "filter": wanted or None}


def breaker_page(*, after: str = "", limit: int = 100) -> Ask[records.BreakerPage]:
    """Read a page of the breakers that ever left closed, by name."""
    return get(_BREAKERS, as_one(records.BreakerPage), {"after": after, "limit": limit})


def get_breaker(name: str) -> Ask[records.RemoteBreaker]:
    """Read one breaker; raises NotFound when it has never left closed."""
    return get(f"{_BREAKERS}/{word(name)}", as_one(records.RemoteBreaker))


def breaker_history(name: str, *, limit: int = 100) -> Ask[list[records.RemoteBreakerEvent]]:
    """Read the changes of a breaker, newest first."""
    return get(f"{_BREAKERS}/{word(name)}/history", as_list("events", records.RemoteBreakerEvent), {"limit": limit})


def reset_breaker(name: str) -> Ask[records.RemoteBreaker]:
    """Close a breaker, even while a run is trying it."""
    return post(f"{_BREAKERS}/{word(name)}/reset", as_one(records.RemoteBreaker), is_repeatable=True)


def force_open_breaker(name: str, for_: Duration | None = None) -> Ask[records.RemoteBreaker]:
    """Open a breaker, even while a run is trying it: for a while, or until it is reset."""
    body = {"for": None if for_ is None else seconds(for_, "for")}
    return post(f"{_BREAKERS}/{word(name)}/force-open", as_one(records.RemoteBreaker), body)


def list_lanes() -> Ask[list[records.RemoteLane]]:
    """Read every lane by name, with its exact counts."""
    return get(f"{API}/lanes", as_list("lanes", records.RemoteLane))


def get_lane(name: str) -> Ask[records.RemoteLane]:
    """Read one lane with its exact counts; raises NotFound."""
    return get(f"{API}/lanes/{word(name)}", as_one(records.RemoteLane))


def explain_lane(name: str) -> Ask[Explanation]:
    """Read why the jobs of a lane do or do not move; raises NotFound with the nearest names."""
    return get(f"{API}/lanes/{word(name)}/explain", as_one(Explanation))


def pause_lane(name: str, *, force: bool = False) -> Ask[records.RemoteGate]:
    """Let no job of a lane be claimed from now on; what runs goes on."""
    return _gate(f"lanes/{word(name)}/pause", as_one(records.RemoteGate), force=force)


def resume_lane(name: str, *, force: bool = False) -> Ask[records.RemoteGate]:
    """Let the jobs of a lane be claimed again."""
    return _gate(f"lanes/{word(name)}/resume", as_one(records.RemoteGate), force=force)


def drain_lane(name: str, *, force: bool = False) -> Ask[records.RemoteDrain]:
    """Pause a lane and count what still runs in it; ask again until it is done."""
    return _gate(f"lanes/{word(name)}/drain", as_one(records.RemoteDrain), force=force)


def _gate(path: str, read: Callable[[Any], T], *, force: bool) -> Ask[T]:
    # A name that nothing has declared is refused with NotFound unless it is meant.
    query = {"force": "true"} if force else {}
    return Ask(method="POST", path=f"{API}/{path}", read=read, query=query, is_repeatable=True)


def task_page(*, after: str = "", limit: int = 100) -> Ask[records.TaskPage]:
    """Read a page of the tasks that processes declared, by name."""
    return get(f"{API}/tasks", as_one(records.TaskPage), {"after": after, "limit": limit})


def get_task(name: str) -> Ask[records.RemoteTask]:
    """Read one task with its jobs by state; raises NotFound."""
    return get(f"{API}/tasks/{word(name)}", as_one(records.RemoteTask))


def explain_task(name: str) -> Ask[Explanation]:
    """Read why the jobs of a task do or do not move; raises NotFound with the nearest names."""
    return get(f"{API}/tasks/{word(name)}/explain", as_one(Explanation))


def pause_task(name: str, *, force: bool = False) -> Ask[records.RemoteGate]:
    """Let no job of a task be claimed from now on; what runs goes on."""
    return _gate(f"tasks/{word(name)}/pause", as_one(records.RemoteGate), force=force)


def resume_task(name: str, *, force: bool = False) -> Ask[records.RemoteGate]:
    """Let the jobs of a task be claimed again."""
    return _gate(f"tasks/{word(name)}/resume", as_one(records.RemoteGate), force=force)


def drain_task(name: str, *, force: bool = False) -> Ask[records.RemoteDrain]:
    """Pause a task and count what still runs of it; ask again until it is done."""
    return _gate(f"tasks/{word(name)}/drain", as_one(records.RemoteDrain), force=force)


def list_workers(*, limit: int = 500) -> Ask[list[records.RemoteWorker]]:
    """Read the processes that run jobs, last seen first."""
    return get(f"{API}/workers", as_list("workers", records.RemoteWorker), {"limit": limit})


def pause_worker(worker: str) -> Ask[records.RemoteWorker]:
    """Let a worker claim nothing more; it runs what it has claimed. Raises NotFound."""
    return Ask(method="POST", path=f"{API}/workers/{word(worker)}/pause", read=as_one(records.RemoteWorker), is_repeatable=True)


def resume_worker(worker: str) -> Ask[records.RemoteWorker]:
    """Let a worker claim again; raises NotFound."""
    return Ask(method="POST", path=f"{API}/workers/{word(worker)}/resume", read=as_one(records.RemoteWorker), is_repeatable=True)


def correlation(correlation_id: str, *, after: int | None = None) -> Ask[list[records.TracedJob]]:
    """Trace an action: its jobs, each before those it enqueued; a job's own UUID finds it and what came of it.

    At most 500; those with a higher number than `after` come next.
    """
    return get(f"{API}/correlations/{word(correlation_id)}", as_list("jobs", records.TracedJob), {"after": after})


def changes_now() -> Ask[records.RemoteChange]:
    """Count the jobs of each state."""
    return get(f"{API}/events", as_one(records.RemoteChange))


def doctor() -> Ask[Examination]:
    """Run the quick checks of the server's database, fleet and settings; needs the role operator."""
    return get(f"{API}/doctor", _examination)


def _examination(answer: Any) -> Examination:
    return Examination(tuple(as_list("checks", Finding)(answer)))
