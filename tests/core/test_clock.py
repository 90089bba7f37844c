"""The counter that leases are measured with."""

from __future__ import annotations

import runpy
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

import windlass.clock

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other counters that run on in sleep")
def test_time_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease runs out in that time too: a counter that stood still would let a worker go on with a job it has lost."""
    slept_s, read = 0.0, time.clock_gettime

    def after_sleep(counter: int) -> float:
        # Only this one counts the time in which the machine is suspended.
        return read(counter) + (slept_s if counter == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", after_sleep)
    # Loaded anew, as it takes hold of its counter when it is loaded.
    clock = runpy.run_path(windlass.clock.__file__)["DatabaseClock"](NOON)
    before = clock.monotonic()
    slept_s = 3600.0
    assert clock.monotonic() - before >= slept_s
    assert clock.now() >= NOON + timedelta(hours=1)
