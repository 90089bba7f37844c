"""Helpers for tests of applications and of Windlass itself."""

from typing import TYPE_CHECKING, Any

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
    "FakeClock": "clock",
    "Ran": "ran",
    "assert_enqueued": "enqueue_checks",
    "assert_not_enqueued": "enqueue_checks",
    "enqueued": "enqueue_checks",
    "fresh": "fresh_app",
    "run_all": "runner",
    "run_all_sync": "runner",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: pytest loads the plugin beside it in every run, used or not."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as late as what it imports

    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
