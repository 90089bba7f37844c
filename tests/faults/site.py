"""A database under attack, with the ways to hurt it and the addresses its clients use."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.faults.proxy import Proxies, Proxy
from tests.support.postgres_server import PostgresServer, running_postgres
from tests.support.stores import migrate_postgres, migrate_sqlite

CLASSES = ("left", "right", "server", "clients")
"""Who reaches the database over a wire of its own."""
_TMPFS_MB = 600
_SPARES_KB = (0, 16, 64, 256, 1024)


class Site:
    """Where the jobs are: `url` past the proxies, `url_of` for a class of clients."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.server: PostgresServer | None = None
        self.proxies: dict[str, Proxy] = {}
        self.disk: Path | None = None
        """A small disk of the database's own, where one can be had."""
        self.skipped: list[str] = []

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    def url_of(self, name: str) -> str:
        if name not in self.proxies:
            return self.url
        parts = urlsplit(self.url)
        user = parse_qs(parts.query)["user"][0]
        return f"postgresql://{user}@127.0.0.1:{self.proxies[name].port}{parts.path}"

    def limit_disk(self, *, is_full: bool) -> None:
        """Leave the disk no room, or room again."""
        assert self.disk is not None
        if not is_full:
            self._resize_disk(_TMPFS_MB << 10)
            return
        for spare_kb in _SPARES_KB:
            found = os.statvfs(self.disk)
            if self._resize_disk((found.f_blocks - found.f_bfree) * found.f_frsize // 1024 + spare_kb):
                return
        raise OSError("the disk fills faster than it can be made smaller")

    def _resize_disk(self, size_kb: int) -> bool:
        """Give the disk another size; refused if more is in use by now."""
        command = ["mount", "-o", f"remount,size={size_kb}k", str(self.disk)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def open_site(database: str) -> Iterator[Site]:
    """Make a migrated, empty database for one run."""
    with _postgres_site() if database == "postgres" else _sqlite_site() as site:
        yield site


@contextmanager
def _postgres_site() -> Iterator[Site]:
    with running_postgres() as server:
        dsn = server.create_database("windlass_faults")
        migrate_postgres(dsn)
        site = Site(dsn)
        site.server = server
        host = parse_qs(urlsplit(dsn).query)["host"][0]
        site.skipped.append("disk full (PostgreSQL's own disk would have to be limited)")
        proxies = Proxies(f"{host}/.s.PGSQL.5432")
        site.proxies = {name: proxies.open(name) for name in CLASSES}
        try:
            yield site
        finally:
            proxies.close()


@contextmanager
def _sqlite_site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="windlass-faults-", ignore_cleanup_errors=True) as place:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS_MB}m", "tmpfs", place], capture_output=True, check=False
        )
        path = Path(place) / "jobs.db"
        try:
            migrate_sqlite(path)
            site = Site(f"sqlite:///{path}")
            if mounted.returncode == 0:
                site.disk = Path(place)
            else:
                site.skipped.append("disk full (only root may mount a small disk)")
            yield site
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", "-l", place], check=False)


def build_clock_shim(folder: Path) -> Path | None:
    """Compile what shifts the clock of a process, where there is a compiler."""
    made = folder / "clock_shim.so"
    source = Path(__file__).with_name("clock_shim.c")
    try:
        done = subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"], capture_output=True, check=False
        )
    except FileNotFoundError:
        return None
    return made if done.returncode == 0 else None
