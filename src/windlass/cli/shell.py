"""`windlass shell`: Python with an application at hand."""

from __future__ import annotations

import ast
import asyncio
import code
import inspect
import sys
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.session import quiet_driver
from windlass.cli.target import open_app


@click.command()
@click.argument("target", metavar="[MODULE:APP]", required=False)
@click.option("--plain", is_flag=True, help="Python's own shell, also where IPython is installed.")
@options.database
def shell(target: str | None, *, plain: bool, database: str | None) -> None:
    """Try things out in Python, with an application at hand.

    `app` is the application, and each of its tasks has its own name. `await` works, as in `await app.list()`.
    Uses IPython where it is installed. Lines from a pipe are run as they come.
    """
    quiet_driver()
    app = open_app(target, database_url=database)
    names = names_of(app)
    asyncio.run(_open(app, names, is_plain=plain))


def names_of(app: Windlass) -> dict[str, Any]:
    """Return what is at hand in the shell: the application, its tasks, and what queries are made of."""
    from windlass.core.filter import JobFilter  # noqa: PLC0415 - a shell alone needs it
    from windlass.core.page import JobQuery  # noqa: PLC0415 - as above

    tasks = {name: task for name, task in app.tasks.items() if name.isidentifier()}
    return {**tasks, "app": app, "JobQuery": JobQuery, "JobFilter": JobFilter}


def _greeting(app: Windlass, names: dict[str, Any]) -> str:
    tasks = sorted(name for name in names if name in app.tasks)
    told = f"app is {app.name!r} on {app.settings.database_url.partition(':')[0]}; await works, as in `await app.list()`"
    return f"windlass: {told}" + (f"\n  tasks: {', '.join(tasks)}" if tasks else "")


async def _open(app: Windlass, names: dict[str, Any], *, is_plain: bool) -> None:
    """Run the shell on a thread of its own, so that what is awaited runs on this loop."""
    loop = asyncio.get_running_loop()
    async with app:
        await asyncio.to_thread(_talk, app, names, loop, is_plain=is_plain)


def _talk(app: Windlass, names: dict[str, Any], loop: asyncio.AbstractEventLoop, *, is_plain: bool) -> None:
    console = None if is_plain or not sys.stdin.isatty() else _ipython(names, loop)
    if console is None:
        banner = _greeting(app, names) if sys.stdin.isatty() else ""
        if not banner:
            sys.ps1 = sys.ps2 = ""
        _Console(names, loop).interact(banner=banner, exitmsg="")
    else:
        click.echo(_greeting(app, names))
        console()


class _Console(code.InteractiveConsole):
    """Python's own shell, where a line may await."""

    def __init__(self, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(names)
        self._loop = loop
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def runcode(self, code: CodeType) -> None:
        """Run a line, and what it awaits on the application's loop."""
        try:
            answer = FunctionType(code, self.locals)()
            if inspect.iscoroutine(answer):
                asyncio.run_coroutine_threadsafe(answer, self._loop).result()
        except SystemExit:
            raise
        except BaseException:  # noqa: BLE001 - as a shell does: it is shown, and the next line comes
            self.showtraceback()


def _ipython(names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Return what opens IPython, or nothing where it is not installed."""
    try:
        embedded: Any = import_module("IPython.terminal.embed")
    except ImportError:
        return None
    opened = embedded.InteractiveShellEmbed(user_ns=names, banner1="")

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    opened.loop_runner = run
    opened.autoawait = True
    return opened
