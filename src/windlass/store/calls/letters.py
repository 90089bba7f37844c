"""The verbs of dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME, MAX_TEXT, DeadLetter, Enqueued, Job, JobState, NewJob, Note
from windlass.core.letters import MAX_NOTE, LetterFilter, Settled, with_note
from windlass.core.payload import decode_object, encode, encode_object, sanitise_text
from windlass.core.record import record
from windlass.errors import InvalidInput, LetterNotFound, SlotTaken
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.control import restart
from windlass.store.calls.move import deed_of, numbers
from windlass.store.calls.work import enqueue
from windlass.store.rows import SHAPES

SHAPES |= {"get_letters": rows.LETTER, "lock_letter": rows.LETTER}


@record(kw_only=True)
class Settling(Call[Settled]):
    """A verb of letters ready to run; a bulk needs only its `changes`."""

    name: str
    changes: Callable[[Means], Steps[set[int]]]


def acknowledge(ids: Sequence[int], *, by: str, note: str | None = None) -> Settling:
    """Acknowledge letters; one that was acknowledged before stays as it is."""
    check_text("by", by, MAX_NAME)
    kept = None if note is None else sanitise_text(note, MAX_TEXT)
    params = {"ids": numbers(ids), "by": by, "note": kept}

    def changes(_: Means) -> Steps[set[int]]:
        return set(rows.ids((yield Step("acknowledge", params))))

    def steps(means: Means) -> Steps[Settled]:
        return (yield from _settled("acknowledge", ids, (yield from changes(means)), {}))

    return Settling(steps=steps, name="acknowledge", changes=changes, deed=was_settled)


class Return(NamedTuple):
    """A job that a requeue met: the one that came back for it, or the one that holds its key."""

    job_id: int
    holder: int | None = None


def requeue(ids: Sequence[int]) -> Settling:
    """Bring back the jobs of open letters and close them; of any number of callers one does it.

    A failed job starts afresh, a schedule that went on runs now, and a job that is gone is made again.
    """

    def changes(means: Means) -> Steps[set[int]]:
        return {letter for letter, met in (yield from bring_back(ids, means)).items() if met.holder is None}

    def steps(means: Means) -> Steps[Settled]:
        met = yield from bring_back(ids, means)
        if len(ids) == 1 and met and met[ids[0]].holder is not None:
            raise SlotTaken(met[ids[0]].job_id, met[ids[0]].holder or 0)
        back = {letter: one.job_id for letter, one in met.items() if one.holder is None}
        return (yield from _settled("requeue", ids, set(back), back))

    return Settling(
        steps=steps, name="requeue", changes=changes, wakes=lambda settled: wakes.by_jobs(settled.jobs), deed=was_settled
    )


def edit(letter_id: int, payload: Mapping[str, Any], *, by: str) -> Call[DeadLetter]:
    """Change what the job of an open letter comes back with; the letter keeps the payload it died with.

    Raises LetterNotFound, and LetterSettled when the letter is closed.
    """
    check_text("by", by, MAX_NAME)
    params = {"id": possible_id(letter_id), "payload": encode_object(dict(payload)), "by": by}

    def steps(_: Means) -> Steps[DeadLetter]:
        changed = set(rows.ids((yield Step("edit_letter", params))))
        return (yield from _settled("edit", [letter_id], changed, {})).one()

    return Call(steps, deed=lambda letter: Deed("edit", f"letter:{letter.id}", details=encode_object({"job": letter.job_id})))


def add_note(letter_id: int, text: str, *, by: str) -> Call[DeadLetter]:
    """Add a note to a letter, open or closed; raises LetterNotFound."""
    check_text("by", by, MAX_NAME)
    check_text("text", text, MAX_NOTE)

    def steps(_: Means) -> Steps[DeadLetter]:
        found = rows.dead_letters((yield Step("lock_letter", {"id": possible_id(letter_id)})))
        if not found:
            raise LetterNotFound(letter_id)
        [[moment]] = yield Step("clock", {})
        notes = with_note(found[0], Note(moment, by, text))
        yield Step("set_notes", {"id": letter_id, "notes": notes})
        return replace(found[0], notes_json=notes)

    return Call(steps, deed=lambda letter: Deed("note", f"letter:{letter.id}"))


def possible_id(letter_id: int) -> int:
    """Return a number that a letter can have, or 0, which none has."""
    return letter_id if 0 < letter_id <= MAX_JOB else 0


def was_settled(answer: Settled) -> Deed:
    """Describe for the audit log what was done to letters."""
    return deed_of(answer, "letter", [letter.id for letter in (*answer.changed, *answer.refused)] + list(answer.missing))


def _settled(name: str, ids: Sequence[int], changed: set[int], back: Mapping[int, int]) -> Steps[Settled]:
    left = rows.dead_letters((yield Step("get_letters", {"ids": numbers(ids)})))
    jobs = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(set(back.values()))}))) if back else []
    known = {letter.id for letter in left}
    return Settled(
        name,
        tuple(letter for letter in left if letter.id in changed),
        tuple(letter for letter in left if letter.id not in changed),
        tuple(letter_id for letter_id in ids if letter_id not in known),
        tuple(jobs),
    )


def bring_back(ids: Sequence[int], means: Means) -> Steps[dict[int, Return]]:
    """Return for each letter that was open which job came back, or the holder of the key of the one that could not."""
    asked = rows.dead_letters((yield Step("get_letters", {"ids": numbers(ids)})))
    # Jobs before letters, as everywhere; what was read before the locks is read again.
    yield Step("lock_jobs", {"ids": batches.numbers({letter.job_id for letter in asked})})
    still_open = set(rows.ids((yield Step("lock_letters", {"ids": numbers(ids)}))))
    letters = [letter for letter in asked if letter.id in still_open]
    found = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers({letter.job_id for letter in letters})})))
    met = yield from _return(found)
    known = {job.id for job in found}
    yield from _set_payloads([letter for letter in letters if letter.job_id in met and met[letter.job_id].holder is None])
    met |= yield from _make_again([letter for letter in letters if letter.job_id not in known], means)
    back = [job_id for job_id, one in met.items() if one.holder is None]
    if back:
        # Every letter of the job that is not closed: one run settles them all.
        yield Step("close_letters", {"ids": batches.numbers(back), "closed_reason": "requeued"})
    return {letter.id: met[letter.job_id] for letter in letters if letter.job_id in met}


def _return(jobs: Sequence[Job]) -> Steps[dict[int, Return]]:
    failed = [job.id for job in jobs if job.state is JobState.FAILED]
    others = [job.id for job in jobs if job.state is not JobState.FAILED and job.cadence is not None]
    restarted = (yield from restart(failed, "requeued")) if failed else set()
    hurried = set(rows.ids((yield Step("run_now", {"ids": batches.numbers(others)})))) if others else set()
    met = {job_id: Return(job_id) for job_id in restarted | hurried}
    refused = [job_id for job_id in failed if job_id not in restarted]
    if refused:
        for job_id, holder in (yield Step("holders_of", {"ids": batches.numbers(refused)})):
            met[job_id] = Return(job_id, holder)
    return met


def _set_payloads(letters: Sequence[DeadLetter]) -> Steps[None]:
    """Write edited payloads of letters to their jobs, where those exist."""
    texts = ((one.job_id, one.edited_payload_json) for one in letters)
    edited = [f'{{"id":{job_id},"payload":{text}}}' for job_id, text in texts if text is not None]
    if edited:
        yield Step("set_payloads", {"batch": batches.array(edited)})


def _make_again(letters: Sequence[DeadLetter], means: Means) -> Steps[dict[int, Return]]:
    """Enqueue jobs that are gone, from what their letters kept of them."""
    jobs = dict(_originals(letters))
    if not jobs:
        return {}
    made: list[Enqueued] = yield from enqueue(list(jobs.values())).steps(means)
    return {
        job_id: Return(job_id, new.id) if new.is_duplicate else Return(new.id) for job_id, new in zip(jobs, made, strict=True)
    }


def _originals(letters: Sequence[DeadLetter]) -> Iterator[tuple[int, NewJob]]:
    for letter in letters:
        try:
            yield letter.job_id, original(letter)
        except InvalidInput:
            # What it was made with cannot be read any more; the letter stays and is refused.
            continue


def original(letter: DeadLetter) -> NewJob:
    """Describe the job a letter is about, as a child of the one that is gone."""
    kept: dict[str, Any] = decode_object(letter.original_job_json, field="original_job")
    # What is JSON in the row is a value in the letter.
    texts: dict[str, str] = {name: encode(kept[name]) for name in ("payload", "metadata", "item_key") if kept[name] is not None}
    comes_back = kept["cadence"] is not None and not kept["spawn"]
    if letter.edited_payload_json is not None:
        texts["payload"] = letter.edited_payload_json
    return NewJob.like({**kept, **texts, "spawn": bool(kept["spawn"])}, delay=timedelta() if comes_back else None)


def highest() -> Call[int]:
    """Find where a bulk over letters ends."""
    return single("highest_letter", {}, lambda found: found[0][0], is_read=True)


def page(wanted: LetterFilter, after: int, until: int, limit: int) -> Call[list[int]]:
    """Read the numbers of letters that match, in order."""
    check_range("limit", limit, 1, batches.MAX_ROWS)
    params = page_params(wanted, after, until, limit)
    if wanted.ids is None and wanted.fingerprint is not None:
        return single("page_letters_alike", params, rows.ids, is_read=True)
    if wanted.ids is None:
        return single("page_letters", params, rows.ids, is_read=True)
    return single("pick_letters", {**params, "ids": batches.numbers(wanted.ids)}, rows.ids, is_read=True)


def page_params(wanted: LetterFilter, after: int, until: int, limit: int) -> dict[str, Any]:
    """Return what the queries for pages of numbers ask for."""
    chosen = {"task": wanted.task, "fingerprint": wanted.fingerprint, "is_open": wanted.is_open}
    return {"after": after, "until": until, "limit": limit, **chosen}
