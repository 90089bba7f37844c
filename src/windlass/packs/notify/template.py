"""Mails as files: a line with the subject, an empty line, the text; `$name` stands for a value."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from windlass.core.signals import Discard

_HEAD = "Subject: "


class NoTemplate(Discard):
    """There is no mail of this name here; another machine may have it."""


class Filled(NamedTuple):
    """A template with its values."""

    subject: str
    text: str


def fill(name: str, data: Mapping[str, Any], folder: str | None) -> Filled:
    """Read a template from the folder, else from ours, and put the values in; raises Discard when either is not there."""
    head, separator, text = _read(name, folder).partition("\n\n")
    if not head.startswith(_HEAD) or "\n" in head or not separator:
        raise Discard(f"template {name!r} must begin with a line '{_HEAD}…' and an empty line")
    try:
        subject = Template(head.removeprefix(_HEAD)).substitute(data)
        # A value may hold line breaks, and a subject may not.
        return Filled(" ".join(subject.split()), Template(text).substitute(data))
    except KeyError as error:
        raise Discard(f"template {name!r} needs {error.args[0]!r} in data") from None
    except ValueError as error:
        raise Discard(f"template {name!r}: {error}") from None


def _read(name: str, folder: str | None) -> str:
    own = files("windlass.packs.notify").joinpath("mails", f"{name}.txt")
    for place in (Path(folder) / f"{name}.txt", own) if folder else (own,):
        try:
            return place.read_text("utf-8")
        except FileNotFoundError:
            continue
    raise NoTemplate(f"there is no template {name!r}; put {name}.txt into the folder that WINDLASS_MAIL_TEMPLATES names")
