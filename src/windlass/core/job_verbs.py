"""What operators do to jobs: one entry for each verb; HTTP routes, commands, bulk actions and both clients are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

HIGHEST_BOOST = 100
"""A boost leads no higher."""
USUAL_BOOST = 10
FAILED_BY_HAND = "failed by an operator"
"""The error of a job that an operator fails without naming one."""


class JobVerb(NamedTuple):
    """A verb on one job, and on many."""

    summary: str
    """What it does to one job: the docstring of its methods and the description of its route."""
    many: str | None = None
    """What it does to many, as the help of its command; None: there is no command that takes filters."""
    done: str = ""
    """What many jobs then are, by that command: "7 matched: 5 paused, 2 refused"."""
    in_store: str | None = None
    """Its name in the store, where that is another."""
    takes: Mapping[str, str] = MappingProxyType({})
    """Its options: by the name that a bulk over HTTP has, the name in the store."""
    defaults: Mapping[str, Any] = MappingProxyType({})
    """What a bulk over HTTP takes for options of the store that are left out."""


JOB_VERBS = {
    "cancel": JobVerb(
        "Cancel a job at once; a late success of its run is refused.",
        done="cancelled",
        many="Cancel jobs at once; a late success of a running one is refused.",
        takes={"reason": "reason"},
    ),
    "pause": JobVerb("Hold a waiting job until it is resumed.", done="paused", many="Hold waiting jobs until they are resumed."),
    "resume": JobVerb(
        "Let a paused job go on; a recurring one counts anew from now.",
        done="resumed",
        many="Let paused jobs go on; recurring ones count anew from now.",
    ),
    "retry": JobVerb(
        "Start a failed job afresh; raises SlotTaken when another job holds its unique key.",
        done="retried",
        many="Give failed jobs a fresh start.",
    ),
    "run_now": JobVerb(
        "Run a waiting job now, a running one once more after its run.",
        done="to run now",
        many="Run waiting jobs now, running ones once more after their run.",
    ),
    "stop": JobVerb("Ask a recurring job to end this run; its schedule goes on.", in_store="stop_run"),
    "enable": JobVerb("Let a job go on at its next time, at once if that has passed."),
    "disable": JobVerb("Stop a job from running by itself, keeping its next time; a running one finishes its run."),
    "boost": JobVerb(
        "Raise the priority of a job that is not over, up to 100.", takes={"amount": "amount"}, defaults={"amount": USUAL_BOOST}
    ),
    "set_priority": JobVerb(
        "Give a job that is not over a new priority, which is also the one it returns to.", takes={"priority": "priority"}
    ),
    "fail": JobVerb(
        "End a run as failed, by its retry policy or for good; a due job waits for its retry, one that is not due cannot.",
        takes={"reason": "error", "will_retry": "will_retry"},
        defaults={"error": FAILED_BY_HAND, "will_retry": True},
    ),
    "bury": JobVerb(
        "Fail a waiting job for good, with a dead letter.", takes={"reason": "error"}, defaults={"error": FAILED_BY_HAND}
    ),
    "clone": JobVerb("Make a new job from a finished one, which becomes its parent."),
    "take_lease": JobVerb("End a job's lease as if its worker had stopped renewing it."),
    "delete": JobVerb("Remove a job that is not leased; the answer is the job as it was."),
}


class BulkPart(NamedTuple):
    """A part of a bulk: what was done, to which jobs, and where the next part begins."""

    done: Bulk
    changed: tuple[int, ...]
    next: int | None
    """The number after which the next part begins; None: there is none."""
    until: int
    """The highest number the bulk is about: jobs that are made meanwhile are left alone."""


class Bulk(NamedTuple):
    """How many a filter matched when their turn came, how many were changed and how many refused; a dry run only matches."""

    matched: int = 0
    changed: int = 0
    refused: int = 0

    def plus(self, other: Bulk) -> Bulk:
        """Add the counts of another batch."""
        return Bulk(self.matched + other.matched, self.changed + other.changed, self.refused + other.refused)
