"""The ledger's lines put together: runs, enqueues, stalls and what operators did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.faults.ledger import Line


@dataclass
class LedgerRun:
    """One run by its handler's own account."""

    job_id: int
    token: int
    execution: int
    attempt: int
    task: str
    pid: int
    parent: int
    started_ns: int
    ended_ns: int | None = None
    how: str | None = None
    starts: int = 1
    """How often this lease was run; more than once is once too often."""


class Ack(NamedTuple):
    """An acknowledged enqueue."""

    nonce: str
    job_id: int
    is_duplicate: bool
    on_conflict: str


class Stall(NamedTuple):
    """A time in which a process, or its event loop, could not run."""

    pid: int
    from_ns: int
    to_ns: int
    is_loop: bool


@dataclass
class History:
    """What the processes wrote down."""

    runs: dict[tuple[int, int], LedgerRun] = field(default_factory=dict)
    acks: list[Ack] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    """The nonces of enqueues that nobody has heard an answer of, with what was to happen on a conflict."""
    rolled_back: set[str] = field(default_factory=set)
    stalls: list[Stall] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)
    cancelling: set[int] = field(default_factory=set)
    forced: dict[int, int] = field(default_factory=dict)
    """Jobs that were told to run now, and how often: told so during a run, a job runs once more."""
    requeued: set[int] = field(default_factory=set)
    anew: list[tuple[int, int]] = field(default_factory=list)
    """Processes that started themselves anew, and when: their runs ended then."""


def put_together(lines: Iterable[Line]) -> History:
    """Read lines in any order of processes; those of one process are in order."""
    history = History()
    for line in lines:
        _take(history, line)
    return history


def _take(history: History, line: Line) -> None:  # noqa: C901, PLR0912 - one case for each word
    fields = line.fields
    match line.word:
        case "start":
            _start(history, line)
        case "end":
            run = history.runs.get((int(fields[0]), int(fields[1])))
            if run is not None:
                run.ended_ns, run.how = line.at_ns, fields[2]
        case "sent":
            history.sent |= dict.fromkeys(fields[1:], fields[0])
        case "acked":
            history.sent.pop(fields[0], None)
            history.acks.append(Ack(fields[0], int(fields[1]), fields[2] == "1", fields[3]))
        case "rolled_back":
            for nonce in fields:
                history.sent.pop(nonce, None)
                history.rolled_back.add(nonce)
        case "stalled" | "blocked":
            history.stalls.append(Stall(line.pid, int(fields[0]), line.at_ns, line.word == "blocked"))
        case "cancelling":
            history.cancelling.add(int(fields[0]))
        case "cancelled":
            history.cancelled.add(int(fields[0]))
        case "forcing":
            history.forced[int(fields[0])] = history.forced.get(int(fields[0]), 0) + 1
        case "anew":
            history.anew.append((line.pid, line.at_ns))
            for run in history.runs.values():
                if run.pid == line.pid and run.ended_ns is None:
                    run.ended_ns, run.how = line.at_ns, "replaced"
        case "requeued":
            history.requeued.add(int(fields[0]))


def _start(history: History, line: Line) -> None:
    job, token, execution, attempt, task, parent = line.fields
    key = int(job), int(token)
    if key in history.runs:
        history.runs[key].starts += 1
        return
    history.runs[key] = LedgerRun(*key, int(execution), int(attempt), task, line.pid, int(parent), line.at_ns)
