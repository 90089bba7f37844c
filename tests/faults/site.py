"""A database under attack, with the ways to hurt it and the addresses its clients use."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.faults.proxy import Proxies, Proxy
from tests.support.postgres_server import (
    Account,
    OwnPostgresServer,
    PostgresServer,
    PostgresUnavailable,
    private_folder,
    usable_binaries,
)
from tests.support.stores import migrate_postgres, migrate_sqlite

CLASSES = ("left", "right", "server", "clients")
"""Who reaches the database over a wire of its own."""
_TMPFS_MB = 4096
_SPARES_KB = (0, 16, 64, 256, 1024)
_NO_DISK = "disk full (only root may mount a small disk)"
_REVIVE_S = 30.0


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

    def revive(self) -> None:
        """Wait until the database answers again; PostgreSQL is started when it has ended for want of room."""
        if self.server is None:
            return
        until = time.monotonic() + _REVIVE_S
        while time.monotonic() < until:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.3)
            else:
                return
            # Refused while the server is alive, which then comes back by itself.
            with suppress(PostgresUnavailable):
                self.server.start()
        raise OSError("PostgreSQL does not answer, although its disk has room again")

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
    account = Account.choose()
    with private_folder(account) as folder, _small_disk(folder / "data") as disk:
        account.own(folder)
        server = OwnPostgresServer(folder, account, usable_binaries(account, folder))
        server.create()
        with (folder / "data" / "postgresql.conf").open("a") as file:
            # By default the log alone would outgrow the disk.
            file.write("max_wal_size = 64MB\n")
        server.start()
        dsn = server.create_database("windlass_faults")
        migrate_postgres(dsn)
        site = Site(dsn)
        site.server = server
        site.disk = disk
        if disk is None:
            site.skipped.append(_NO_DISK)
        proxies = Proxies(f"{folder}/.s.PGSQL.5432")
        site.proxies = {name: proxies.open(name) for name in CLASSES}
        try:
            yield site
        finally:
            proxies.close()
            # It must not go on when its disk is taken away; a full disk may have ended it before.
            with suppress(PostgresUnavailable):
                server.stop("immediate")


@contextmanager
def _sqlite_site() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="windlass-faults-", ignore_cleanup_errors=True) as place,
        _small_disk(Path(place)) as disk,
    ):
        path = Path(place) / "jobs.db"
        migrate_sqlite(path)
        site = Site(f"sqlite:///{path}")
        site.disk = disk
        if disk is None:
            site.skipped.append(_NO_DISK)
        yield site


@contextmanager
def _small_disk(place: Path) -> Iterator[Path | None]:
    """Mount a disk of its own at a folder, where that is allowed; else the folder is left as it is."""
    place.mkdir(mode=0o700, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS_MB}m,mode=700", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


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
