"""Helpers for tests of applications and of Windlass itself."""

from windlass.testing.clock import FakeClock

__all__ = ["FakeClock"]
