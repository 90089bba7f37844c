"""The async jobs system's API, on a SQLite file and on PostgreSQL."""

from __future__ import annotations

from tests.client.conftest import app, url

__all__ = ["app", "url"]
