"""Crawls sources, within limits and politely, and keeps what it finds searchable."""

from __future__ import annotations

from windlass.packs.crawl.task import TASK, install

__all__ = ["TASK", "install"]
