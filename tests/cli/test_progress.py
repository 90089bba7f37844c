"""Bars of long work: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

import pytest

from tests.cli.at_terminal import at_terminal
from tests.cli.conftest import Command
from windlass import Windlass
from windlass.cli import progress as bars
from windlass.core.job import NewJob


def test_a_bulk_shows_how_far_it_is_and_ends_without_a_trace(url: str, app: Windlass) -> None:
    # So many that no machine is done before a bar is drawn.
    for _ in range(20):
        app.enqueue_jobs_sync([NewJob(task="mail") for _ in range(5_000)])
    shown = at_terminal(80, url, "cancel", "--task", "mail", is_error=True)
    assert shown.code == 0
    assert "/100000" in shown.text
    # The line of the bar is wiped out at the end.
    assert shown.raw.rstrip().endswith("\x1b[2K")


def test_short_work_shows_no_bar(url: str, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail")])
    assert at_terminal(80, url, "cancel", "--task", "mail", is_error=True).raw == ""


def test_what_is_piped_has_no_bar(windlass: Command, app: Windlass, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "_AFTER_S", 0)
    app.enqueue_jobs_sync([NewJob(task="mail")])
    assert windlass("cancel", "--task", "mail").stderr == ""


def test_migrations_are_named_as_they_are_applied(tmp_path: object) -> None:
    shown = at_terminal(80, f"sqlite:///{tmp_path}/new.db", "migrate", is_error=True)
    assert shown.lines[0].startswith("windlass: applying migration 1 of ")
    assert shown.code == 0
