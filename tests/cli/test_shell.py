"""`windlass shell` at a terminal: Ctrl-C stops what is typed or awaited, and the shell stays usable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.at_terminal import ESCAPE, Typed

SHOP = """\
import asyncio
from windlass import Windlass

app = Windlass()


@app.task
async def greet(name: str) -> None: ...


async def wait() -> None:
    try:
        print("now", "waiting")
        await asyncio.sleep(60)
    finally:
        print("let", "go")
"""
CTRL_C, CTRL_D = "\x03", "\x04"


class Prompts:
    """Waits for the shell to ask for one more line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen = 0

    def wait(self, typed: Typed) -> None:
        typed.wait(lambda _: typed.raw.count(self._text) > self._seen)
        self._seen += 1


def has(typed: Typed, text: str) -> Callable[[str], bool]:
    return lambda _: text in ESCAPE.sub("", typed.raw)


@pytest.mark.parametrize("options", [("--plain",), ()], ids=["plain", "ipython"])
@pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
def test_what_is_awaited_ends_with_ctrl_c_and_the_next_line_runs(
    url: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    # IPython asks for pasted text to be marked each time it is ready for a line.
    next_line = Prompts(">>> " if options else "\x1b[?2004h")
    ours = str(tmp_path / "ipython")
    with Typed(url, "shell", "shop:app", *options, IPYTHONDIR=ours, PROMPT_TOOLKIT_NO_CPR="1") as typed:
        next_line.wait(typed)
        typed.press("from shop import wait\r")
        next_line.wait(typed)
        typed.press("await wait()\r")
        typed.wait(has(typed, "now waiting"))
        typed.press(CTRL_C)
        typed.wait(has(typed, "let go"))
        next_line.wait(typed)
        typed.press("print('job', (await greet.enqueue(name='Ann')).id)\r")
        typed.wait(has(typed, "job 1"))
        next_line.wait(typed)
        typed.press("not finished" + CTRL_C)
        if options:
            # IPython empties its line and asks for no other.
            next_line.wait(typed)
        typed.press("print('total', (await app.list()).total)\r")
        typed.wait(has(typed, "total 1"))
        next_line.wait(typed)
        typed.press(CTRL_D)
        if not options:
            typed.wait(has(typed, "really want to exit"))
            typed.press("y\r")
        assert typed.end() == 0
        assert "Aborted" not in typed.raw
        assert "RuntimeError" not in typed.raw
