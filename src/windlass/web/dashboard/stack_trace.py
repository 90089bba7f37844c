"""A stack trace in pieces: which frames are the application's, which are those of libraries."""

from __future__ import annotations

import re
from typing import NamedTuple

_FRAME = re.compile(r'^(?P<margin>[\s|+]*)File "(?P<file>.+?)", line \d+')
_PACKS = re.compile(r"[/\\]windlass[/\\]packs[/\\]")
_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python\d|[/\\]Python\d+[/\\]Lib[/\\]"
    r"|^<frozen "
    r"|[/\\]windlass[/\\](?:client|core|store|web|worker)[/\\]"
)


class TracePiece(NamedTuple):
    """Some lines of a stack trace."""

    kind: str
    """`own`: a frame of the application; `library`: another frame; `text`: the rest."""
    text: str


def trace_pieces(trace: str) -> list[TracePiece]:
    """Split a stack trace; one that is not Python's is a single piece of text."""
    pieces: list[TracePiece] = []
    margin = ""
    for line in trace.splitlines(keepends=True):
        found = _FRAME.match(line)
        if found:
            margin = found["margin"]
            pieces.append(TracePiece("own" if is_own(found["file"]) else "library", line))
        elif (pieces and pieces[-1].kind != "text" and line.startswith(f"{margin}  ")) or (pieces and pieces[-1].kind == "text"):
            pieces[-1] = pieces[-1]._replace(text=pieces[-1].text + line)
        else:
            pieces.append(TracePiece("text", line))
    return pieces


def is_own(file: str) -> bool:
    """Whether a file is of the application, or of a pack, whose tasks are its like; it may be on another machine."""
    return _PACKS.search(file) is not None or _LIBRARY.search(file) is None
