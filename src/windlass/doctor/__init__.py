"""Examines the database, the fleet and the settings, and names what helps."""

from __future__ import annotations

from windlass.doctor.examine import examine

__all__ = ["examine"]
