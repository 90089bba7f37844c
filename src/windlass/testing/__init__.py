"""Helpers for tests of applications and of Windlass itself."""

from typing import TYPE_CHECKING

from windlass.core.late_names import late_names as _late_names

if TYPE_CHECKING:
    from windlass.testing.clock import FakeClock as FakeClock
    from windlass.testing.enqueue_checks import assert_enqueued as assert_enqueued
    from windlass.testing.enqueue_checks import assert_not_enqueued as assert_not_enqueued
    from windlass.testing.enqueue_checks import enqueued as enqueued
    from windlass.testing.fresh_app import fresh as fresh
    from windlass.testing.ran import Ran as Ran
    from windlass.testing.runner import run_all as run_all
    from windlass.testing.runner import run_all_sync as run_all_sync

_HOME_OF = {
    "FakeClock": ".clock",
    "Ran": ".ran",
    "assert_enqueued": ".enqueue_checks",
    "assert_not_enqueued": ".enqueue_checks",
    "enqueued": ".enqueue_checks",
    "fresh": ".fresh_app",
    "run_all": ".runner",
    "run_all_sync": ".runner",
}

# pytest loads the plugin beside it in every run, used or not.
__getattr__, __dir__ = _late_names(__name__, _HOME_OF)
