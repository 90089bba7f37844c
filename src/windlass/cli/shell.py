"""`windlass shell`: Python with an application at hand."""

from __future__ import annotations

import ast
import asyncio
import code
import inspect
import sys
from collections.abc import Coroutine
from importlib import import_module
from threading import Event, Thread
from types import CodeType, FunctionType
from typing import Any, Self, TypeVar

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.session import quiet_driver
from windlass.cli.target import open_app

T = TypeVar("T")
_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""


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
    with _LoopThread() as loop:
        loop.run(app.__aenter__())
        try:
            _talk(app, names, loop, is_plain=plain)
        finally:
            loop.run(app.aclose())


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


class _LoopThread:
    """An event loop on a thread of its own: Ctrl-C interrupts only the main thread, so what is open on the loop stays open."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="windlass-shell", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it; Ctrl-C cancels it, and pressed again it does not wait for its end."""
        tasks: list[asyncio.Task[T]] = []
        ended = Event()

        def begin() -> None:
            task = self._loop.create_task(coroutine)
            task.add_done_callback(lambda _: ended.set())
            tasks.append(task)

        def cancel() -> None:
            if not tasks:
                begin()
            tasks[0].cancel()

        try:
            self._loop.call_soon_threadsafe(begin)
            ended.wait()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            ended.wait()
            if tasks[0].cancelled():
                raise
        return tasks[0].result()


def _talk(app: Windlass, names: dict[str, Any], loop: _LoopThread, *, is_plain: bool) -> None:
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

    def __init__(self, names: dict[str, Any], loop: _LoopThread) -> None:
        super().__init__(names)
        self._loop = loop
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def runcode(self, code: CodeType) -> None:
        """Run a line, and what it awaits on the application's loop."""
        try:
            answer = FunctionType(code, self.locals)()
            if inspect.iscoroutine(answer):
                self._loop.run(answer)
        except SystemExit:
            raise
        except KeyboardInterrupt:
            if sys.stdin.isatty():
                raise
            # The next line of a pipe may rely on what this one has not done.
            raise SystemExit(_INTERRUPTED) from None
        except BaseException:  # noqa: BLE001 - as a shell does: it is shown, and the next line comes
            self.showtraceback()


def _ipython(names: dict[str, Any], loop: _LoopThread) -> Any:
    """Return what opens IPython, or nothing where it is not installed."""
    try:
        embedded: Any = import_module("IPython.terminal.embed")
    except ImportError:
        return None
    opened = embedded.InteractiveShellEmbed(user_ns=names, banner1="")
    opened.loop_runner = loop.run
    opened.autoawait = True
    return opened
