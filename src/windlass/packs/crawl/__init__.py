"""Crawls sources, within limits and politely, and keeps what it finds searchable (seeds 000 and 001)."""

from __future__ import annotations

from windlass.packs.crawl.task import TASK, install

__all__ = ["TASK", "install"]
