"""A real server in a process of its own, for tests that attack it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKEN = "static-admin-token"


@dataclass
class ServerProcess:
    """A server that listens."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    """What it wrote to its standard error."""

    @property
    def resident_bytes(self) -> int:
        """How much memory it has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(
    folder: Path, *arguments: str, command: str = "serve", most_files: int = 0, **environment: str
) -> Iterator[ServerProcess]:
    """Start `windlass serve` or `up` on a free port, and kill it in the end."""
    out, err = folder / "server.out", folder / "server.err"

    def limit() -> None:
        if most_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))

    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", command, "--port", "0", *arguments],
            cwd=folder,
            env=os.environ | {"WINDLASS_ADMIN_TOKEN": TOKEN} | environment,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=limit,  # noqa: PLW1509 - this process has no other threads yet
        )
    try:
        yield ServerProcess(process, _port(process, out, err), err)
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], out: Path, err: Path) -> int:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and process.poll() is None:
        found = re.search(r"listening on\s+http://127\.0\.0\.1:(\d+)", out.read_text(encoding="utf-8"))
        if found and "try:" in out.read_text(encoding="utf-8"):
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {err.read_text(encoding='utf-8')}")
