"""Windlass, a job queue on the database you already have: SQLite or PostgreSQL."""

__version__ = "0.1.0.dev0"
