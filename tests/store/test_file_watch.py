"""The system's word that a file was written to."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.stores import sqlite_template
from windlass import Windlass
from windlass.store.file_watch import FileWatch, open_watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
LONG = timedelta(seconds=30)


@contextmanager
def watched(path: Path) -> Iterator[tuple[FileWatch, threading.Event]]:
    heard = threading.Event()
    watch = open_watch(str(path), heard.set)
    assert watch is not None
    try:
        yield watch, heard
    finally:
        watch.close()


def test_a_write_is_heard_of_and_silence_is_silence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with watched(file) as (_, heard):
        assert not heard.wait(0.2)
        with file.open("ab") as opened:
            opened.write(b"x")
        assert heard.wait(10)


def test_a_file_that_is_removed_is_watched_no_more(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with watched(file) as (watch, heard):
        file.unlink()
        assert heard.wait(10)
        assert not watch.is_alive


def test_what_cannot_be_watched_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_watch(str(tmp_path / "nothing"), lambda: None) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert open_watch(__file__, lambda: None) is None


def test_a_closed_watch_leaves_no_file_and_no_thread_behind(tmp_path: Path) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - numbers, no paths

    file = tmp_path / "file"
    file.write_bytes(b"")
    with watched(file):
        pass
    before = held()
    for _ in range(20):
        with watched(file):
            pass
        assert open_watch(str(tmp_path / "nothing"), lambda: None) is None
    assert held() == before


@pytest.mark.parametrize("is_watched", [True, False], ids=["watched", "looked for"])
async def test_commits_of_other_processes_are_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_watched: bool
) -> None:
    path = tmp_path / "windlass.db"
    path.write_bytes(sqlite_template())
    if not is_watched:
        monkeypatch.setattr("windlass.store.sqlite.open_watch", lambda *_: None)
    enqueue = f"Windlass('sqlite:///{path}').enqueue_sync('greet', lane='pull'); input()"
    code = f"from windlass import Windlass\nfor _ in range(2): {enqueue}"
    async with Windlass(f"sqlite:///{path}") as app, (await app.store()).wakeups as wakeups:
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE)
        assert other.stdin is not None
        try:
            # The first commit, and all that follows from it.
            assert await wakeups.wait(wakeups.generation(), at_most=LONG)
            while await wakeups.wait(wakeups.generation(), at_most=timedelta(seconds=2)):
                pass
            noted, started = wakeups.generation(), time.monotonic()
            other.stdin.write(b"\n")
            assert await wakeups.wait(noted, at_most=LONG)
            assert time.monotonic() - started < 5
        finally:
            other.kill()
            await other.wait()
