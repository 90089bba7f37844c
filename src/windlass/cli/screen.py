"""A screen of its own at a terminal: drawn over in place, and given back in any case."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from windlass.cli.keys import PressedKeys
from windlass.cli.terminal import has_colour

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def draw(lines: Sequence[str]) -> None:
    """Write over what stands there, line by line, so that nothing flickers."""
    _write(_HOME + "".join(f"{line}{_END_OF_LINE}\r\n" for line in lines) + _END_OF_SCREEN)


def dim(text: str) -> str:
    """Make a text less bright, where colours may be used."""
    return f"\x1b[2m{text}\x1b[0m" if has_colour() else text


@contextmanager
def screen(last: Callable[[], str], keys: PressedKeys | None = None) -> Iterator[None]:
    """Draw on a screen of its own, and read keys if wanted; the one before comes back in any case, with the last picture on it.

    Also while the command is stopped with Ctrl-Z.
    """

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    def rest(*_: object) -> None:
        _leave(keys)
        os.kill(os.getpid(), signal.SIGSTOP)
        _enter(keys)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGTSTP)}
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGTSTP, rest)
    try:
        _enter(keys)
        yield
    finally:
        _leave(keys, last())
        for number, handler in before.items():
            signal.signal(number, handler)


def _enter(keys: PressedKeys | None) -> None:
    if keys is not None:
        keys.take()
    _write(_ENTER)


def _leave(keys: PressedKeys | None, text: str = "") -> None:
    if keys is not None:
        keys.give_back()
    _write(_LEAVE + text)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
