"""Runs shell commands, as cron does. Every enqueuer may run any program: the pack has to be asked for by name."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from windlass.app import Windlass
from windlass.errors import WindlassError

TASK = "command"
log = logging.getLogger("windlass.packs.command")

_SHELL = "/bin/sh"
_PATH = "/usr/bin:/bin"
_KEPT = 16_384
_CHUNK = 65_536
_GRACE_S = 2.0


class CommandFailed(WindlassError):
    """A command ended with another exit code than 0, or was killed."""


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, never_retry=[WrongUser])
    async def command(
        command: str, env: dict[str, str] | None = None, stdin: str | None = None, user: str | None = None
    ) -> dict[str, int]:
        """Run a command line; its output goes to the log of the run, and any exit code but 0 is a failure.

        It gets cron's bare environment and what `env` adds, and nothing of the worker's own.
        """
        await run_command(command, env or {}, stdin, user)
        return {"exit_code": 0}


class WrongUser(WindlassError):
    """A command belongs to a user that this worker may not act for."""


async def run_command(command: str, env: Mapping[str, str], stdin: str | None, user: str | None) -> None:
    """Run a command line to its end; when we are cancelled it is ended with everything it started."""
    account = _account(user)
    shell = env.get("SHELL", _SHELL)
    bare = {"PATH": _PATH, "SHELL": shell, "HOME": account.pw_dir, "LOGNAME": account.pw_name, "USER": account.pw_name}
    surroundings = bare | dict(env)
    process = await _started(
        asyncio.create_subprocess_exec(
            shell,
            "-c",
            command,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=surroundings,
            cwd=_folder(surroundings["HOME"]),
            # A session of its own, so that all it starts can be ended with it.
            start_new_session=True,
            **_as_user(account),
        )
    )
    try:
        output, _ = await asyncio.gather(_read_tail(process), _feed(process, stdin))
        code = await process.wait()
    except BaseException:
        await _end(process)
        raise
    text = output.decode(errors="replace").strip()
    for line in text.splitlines():
        log.info("%s", line)
    if code:
        last = text.rpartition("\n")[2]
        raise CommandFailed(f"{_ending(code)}{': ' if last else ''}{last[:500]}")


async def _started(start: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Start a process and keep it: cancelled meanwhile, asyncio would end the shell and leave what the shell started."""
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


def _account(user: str | None) -> pwd.struct_passwd:
    """Find the user that a command runs as; only root can run it as another."""
    ours = pwd.getpwuid(os.geteuid())
    if user is None or user == ours.pw_name:
        return ours
    if ours.pw_uid != 0:
        raise WrongUser(f"the command belongs to {user!r}, and this worker runs as {ours.pw_name!r}; run a worker as that user")
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise WrongUser(f"the command belongs to {user!r}, and there is no such user here") from None


def _folder(home: str) -> str:
    return home if Path(home).is_dir() else "/"


def _as_user(account: pwd.struct_passwd) -> dict[str, Any]:
    if account.pw_uid == os.geteuid():
        return {}
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups}


async def _read_tail(process: asyncio.subprocess.Process) -> bytes:
    """Read to the end, but keep only the last part."""
    assert process.stdout is not None  # noqa: S101 - asked for above
    tail = b""
    while chunk := await process.stdout.read(_CHUNK):
        tail = (tail + chunk)[-_KEPT:]
    return tail


async def _feed(process: asyncio.subprocess.Process, stdin: str | None) -> None:
    if process.stdin is None or stdin is None:
        return
    try:
        process.stdin.write(stdin.encode())
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        # It did not want to read it all.
        pass


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask the whole group to end, then make it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        # Not asyncio.timeout: before Python 3.11.3 it does not distinguish its own end from the cancel that brought us here.
        await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=_GRACE_S)


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"killed by signal {-code}"
