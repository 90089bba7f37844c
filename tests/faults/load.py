"""The mixed work that is enqueued while faults happen."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from windlass.core.pool import PULL_LANE

LONGEST_RUN_S = 6.0
PAUSED_LANE = "held"
"""The lane that operators pause and resume; only `flaky` goes there."""
KEYS = 12
_CONFLICTS = ("ignore", "replace", "rerun")


class Call(NamedTuple):
    """What to enqueue: a task, its arguments and the options of the job."""

    task: str
    arguments: dict[str, Any]
    options: dict[str, Any]
    copies: int = 1


class Kind(NamedTuple):
    """A kind of work and how often it comes."""

    weight: float
    make: Callable[[Random], Call]


def _nap(rng: Random, longest: float) -> dict[str, Any]:
    return {"seconds": round(rng.uniform(0.01, longest), 3)}


def _keyed(rng: Random) -> Call:
    options = {"unique_key": f"key-{rng.randrange(KEYS)}", "on_conflict": rng.choice(_CONFLICTS)}
    return Call("keyed", _nap(rng, 0.8), options)


MIX = (
    Kind(10, lambda rng: Call("quick", {}, {}, rng.choice((1, 1, 10, 40)))),
    Kind(6, lambda rng: Call("quick_thread", {}, {}, rng.choice((1, 10, 30)))),
    Kind(8, lambda rng: Call("exclusive_quick", {}, {}, rng.choice((1, 10, 40)))),
    # More than the slots can begin at once, so that workers hold jobs ready.
    Kind(0.3, lambda rng: Call(rng.choice(("exclusive_quick", "quick")), {}, {}, 400)),
    Kind(4, lambda rng: Call("nap", _nap(rng, 1.0), {"lane": rng.choice(("default", "fast"))})),
    Kind(1, lambda rng: Call("nap", _nap(rng, LONGEST_RUN_S), {})),
    Kind(2, lambda rng: Call("nap_thread", _nap(rng, 1.0), {})),
    Kind(1, lambda rng: Call("nap_process", _nap(rng, 0.6), {})),
    Kind(3, lambda rng: Call("exclusive_nap", _nap(rng, 1.5), {})),
    Kind(1, lambda rng: Call("exclusive_nap", _nap(rng, LONGEST_RUN_S), {})),
    Kind(2, lambda rng: Call("exclusive_thread", _nap(rng, 1.5), {})),
    Kind(2, lambda rng: Call("flaky", {"failures": rng.randrange(1, 3)}, {"lane": PAUSED_LANE})),
    Kind(0.5, lambda _: Call("doomed", {}, {})),
    Kind(5, _keyed),
    Kind(2, lambda rng: Call("quick", {}, {"delay": round(rng.uniform(0.1, 4.0), 2), "priority": rng.randrange(100)})),
    Kind(3, lambda _: Call("pulled", {}, {"lane": PULL_LANE, "max_attempts": 30})),
)


def draw(rng: Random) -> Call:
    """Choose what comes next."""
    [kind] = rng.choices(MIX, [kind.weight for kind in MIX])
    return kind.make(rng)
