"""What operators do with dead letters."""

from __future__ import annotations

from typing import NamedTuple

from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_KEY, MAX_NAME, DeadLetter, Job, Note
from windlass.core.payload import decode, encode
from windlass.core.record import record
from windlass.errors import InvalidInput, LetterNotFound, LetterSettled

MOST_IDS = 10_000
MAX_NOTE = 2000
MOST_NOTES = 50


@record(kw_only=True)
class LetterFilter:
    """A set of dead letters; an empty field asks for nothing."""

    task: str | None = None
    fingerprint: str | None = None
    is_open: bool = True
    """Only letters that nothing has closed yet."""
    ids: tuple[int, ...] | None = None
    """Only letters with these numbers."""

    def __post_init__(self) -> None:
        """Refuse what no letter could have."""
        if self.ids is not None and len(self.ids) > MOST_IDS:
            raise InvalidInput("ids", len(self.ids), f"must be {MOST_IDS} at most")
        for number in self.ids or ():
            check_range("ids", number, 1, MAX_JOB)
        for field, limit in (("task", MAX_NAME), ("fingerprint", MAX_KEY)):
            value = getattr(self, field)
            if value is not None:
                check_text(field, value, limit)


class Settled(NamedTuple):
    """Dead letters as a move left them, those it refused, and the jobs it brought back."""

    move: str
    changed: tuple[DeadLetter, ...]
    refused: tuple[DeadLetter, ...]
    missing: tuple[int, ...]
    jobs: tuple[Job, ...] = ()

    def one(self) -> DeadLetter:
        """Return the one changed letter, or raise what kept it from changing."""
        if self.changed:
            return self.changed[0]
        if self.refused:
            letter = self.refused[0]
            raise LetterSettled(letter.id, self.move, _why(self.move, letter))
        raise LetterNotFound(self.missing[0])


def with_note(letter: DeadLetter, note: Note) -> str:
    """Return the notes of a letter with one more as JSON text; raises InvalidInput when it has as many as it may have."""
    kept = decode(letter.notes_json, field="notes")
    if len(kept) >= MOST_NOTES:
        raise InvalidInput(
            "text", note.text, f"dead letter {letter.id} has {MOST_NOTES} notes, which is the most; acknowledge it"
        )
    return encode([*kept, {"at": note.at.isoformat(), "by": note.by, "text": note.text}], field="notes")


def _why(move: str, letter: DeadLetter) -> str:
    if move == "acknowledge":
        return f"{letter.acknowledged_by} acknowledged it before"
    if letter.closed_at is not None:
        return f"it was {letter.closed_reason} before"
    return f"job {letter.job_id} has ended in another way, or cannot be made again"
