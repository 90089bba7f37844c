"""A SQLite file: its journal, its checkpoints, the room on its disk."""

from __future__ import annotations

from pathlib import Path

from windlass.core.finding import Finding, ok, problem, warning
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import size
from windlass.store import parse_url
from windlass.store.sqlite import has_wal_reset_bug
from windlass.store.sqlite_file import SqliteFiles, look_at
from windlass.store.sqlite_library import driver

_MIB = 2**20
_GIB = 2**30
# SQLite writes back after four: this much stays only where a reader is in the way.
_UNWRITTEN = 32 * _MIB
_UNWRITTEN_PROBLEM = _GIB
_LITTLE_ROOM = _GIB
_NO_ROOM = 100 * _MIB
_LITTLE_SHARE = 0.05
_FULL = 2
_DURABILITY = {"0": "off", "1": "normal", "2": "full", "3": "extra"}


def file_of(case: DoctorCase) -> str | None:
    """Name the file; a database in memory has none."""
    _, path, _ = parse_url(case.settings.database_url)
    return None if path == ":memory:" else path


async def check_journal(case: DoctorCase) -> Finding:
    """Look at the journal mode and at what a commit waits for."""
    facts = await case.server()
    mode, durability = facts["journal_mode"], _DURABILITY.get(facts["synchronous"], facts["synchronous"])
    message = f"journal mode {mode}, synchronous {durability}"
    if int(facts["synchronous"]) < _FULL:
        return problem(
            "journal", f"{message}: a power failure may undo commits", "let nothing set `pragma synchronous` below full"
        )
    if file_of(case) is None:
        return warning(
            "journal", "the database is in memory, and gone with its process", "name a file, as in --database sqlite:///jobs.db"
        )
    if mode != "wal":
        if has_wal_reset_bug(driver.sqlite_version_info):
            return ok("journal", f"{message}: slower than WAL, which is not safe with this SQLite")
        remedy = f"stop every process, then `sqlite3 {file_of(case)} 'pragma journal_mode = wal'`"
        return warning("journal", f"{message}: readers and the writer wait for each other", remedy)
    return ok("journal", message)


async def check_checkpoint(case: DoctorCase) -> Finding:
    """Look whether the journal is written back into the file."""
    files = await _files(case)
    if files is None:
        return ok("checkpoint", "a database in memory has none")
    message = f"the journal has {size(files.journal_size)}, {size(files.unwritten)} of it not yet written back"
    if files.unwritten < _UNWRITTEN:
        return ok("checkpoint", message)
    remedy = f"end whatever has read for so long: `fuser -v {files.path}` lists the processes that have the file open"
    kind = problem if files.unwritten >= _UNWRITTEN_PROBLEM else warning
    return kind("checkpoint", f"{message}: a reader holds it back, and the file grows", remedy)


async def check_disk(case: DoctorCase) -> Finding:
    """Look how much room is left beside the file."""
    files = await _files(case)
    return ok("disk", "a database in memory needs none") if files is None else disk_room(files)


def disk_room(files: SqliteFiles) -> Finding:
    """Rate the room that is left."""
    message = f"the file has {size(files.size)}, and {size(files.free)} of {size(files.disk)} are free"
    remedy = f"make room on the disk of {Path(files.path).resolve().parent}, or keep less: WINDLASS_KEEP_DAYS"
    if files.free < _NO_ROOM:
        return problem("disk", f"{message}: writes fail soon", remedy)
    if files.free < _LITTLE_ROOM or files.free < files.disk * _LITTLE_SHARE:
        return warning("disk", message, remedy)
    return ok("disk", message)


async def _files(case: DoctorCase) -> SqliteFiles | None:
    path = file_of(case)
    return None if path is None else await case.aside(lambda: look_at(path))
