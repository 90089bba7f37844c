"""How deep the queue was, minute by minute."""

from __future__ import annotations

from datetime import datetime, timedelta

from windlass.core.insights import summarize
from windlass.core.sample import KEPT, Sample, sample
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.insights import read_flow
from windlass.store.rows import SHAPES, Shape

_MICROSECOND = timedelta(microseconds=1)
_MINUTE_FIRST = Shape((0,))
SHAPES |= {"list_samples": _MINUTE_FIRST, "prune_samples": _MINUTE_FIRST, "record_sample": _MINUTE_FIRST}


def take() -> Call[Sample]:
    """Read how deep the queue is."""

    def steps(_: Means) -> Steps[Sample]:
        looked = yield from read_flow()
        return sample(summarize(looked.present, looked.recent, has_tasks=False))

    return Call(steps, is_read=True, is_snapshot=True)


def record(taken: Sample) -> Call[int]:
    """Write the sample of a minute, in place of an earlier one, and delete what is too old; returns how many rows changed."""

    def steps(_: Means) -> Steps[int]:
        params = {**taken._asdict(), "oldest_us": taken.oldest // _MICROSECOND}
        del params["oldest"]
        written = yield Step("record_sample", params)
        gone = yield Step("prune_samples", {"kept_since": taken.minute - KEPT})
        return len(written) + len(gone)

    return Call(steps)


def read_since(since: datetime) -> Steps[list[Sample]]:
    """Read the samples from a minute on, oldest first; part of a call that shows them."""
    found = yield Step("list_samples", {"since": since})
    return [Sample(minute, waiting, oldest * _MICROSECOND, *rest) for minute, waiting, oldest, *rest in found]
