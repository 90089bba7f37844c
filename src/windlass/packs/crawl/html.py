"""Reads title, text and links out of HTML, broken or not.

Its own reader and not `html.parser`: that one takes hours for a megabyte of unclosed comments, on purpose or not. Here every
part of the text is looked at a bounded number of times.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_MAX_LINKS = 10_000
_MAX_TAG = 4_096
_MAX_SLIPS = 100
_MAX_TEXT = 1_000_000
_MARKUP = re.compile(r"<(?=[a-zA-Z!?]|/[a-zA-Z])")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
# Possessive: a tag that does not end is found out in one go.
_TAG_END = re.compile(r"""(?>[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?>\s*+=\s*+(?>"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?""")
# Python refuses to read a number of thousands of digits; one of a hundred is no character either.
_NO_CHARACTER = re.compile(r"&#[0-9]{100,}+;?")
_RAW = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"})
_READ = frozenset({"a", "area", "base", "meta"})
_INLINE = frozenset(
    [
        *(
            "a",
            "abbr",
            "acronym",
            "b",
            "bdi",
            "bdo",
            "big",
            "cite",
            "code",
            "data",
            "dfn",
            "em",
            "font",
            "i",
            "ins",
            "kbd",
            "mark",
        ),
        *("nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    ]
)


class HtmlDocument(NamedTuple):
    """The content of a page."""

    title: str
    text: str
    links: tuple[str, ...]
    """As they are written, in order; each once."""
    base: str | None
    robots: frozenset[str]
    """Words such as `noindex`, in lower case."""


def read_html(text: str) -> HtmlDocument:
    """Read a whole page."""
    return _HtmlReader(text).read()


class _HtmlReader:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._title: str | None = None
        self._links: dict[str, None] = {}
        self._base: str | None = None
        self._robots: set[str] = set()
        self._never_closed: set[str] = set()
        self._slips = 0

    def read(self) -> HtmlDocument:
        place = 0
        while 0 <= place < len(self._text):
            found = _MARKUP.search(self._text, place)
            self._parts.append(self._text[place : found.start() if found else None])
            place = self._markup(found.start()) if found else -1
        text = _plain("".join(self._parts))
        return HtmlDocument(_plain(self._title or ""), text, tuple(self._links), self._base, frozenset(self._robots))

    def _markup(self, opening: int) -> int:
        """Read what begins with a `<`; returns where to go on, negative at the end."""
        text = self._text
        if text.startswith("<!--", opening):
            return _after(text, "-->", opening + 4)
        is_closing = text[opening + 1] == "/"
        name = _NAME.match(text, opening + 1 + is_closing)
        if name is None:
            return _after(text, ">", opening)
        return self._tag(name[0].lower(), name.end(), is_closing=is_closing)

    def _tag(self, name: str, place: int, *, is_closing: bool) -> int:
        if name not in _INLINE:
            self._parts.append(" ")
        found = _TAG_END.match(self._text, place, place + _MAX_TAG)
        if found is None:
            return self._slip(place)
        if is_closing:
            return found.end()
        if name in _READ:
            self._note(name, dict(_attributes(found[0])))
        return self._raw(name, found.end()) if name in _RAW else found.end()

    def _slip(self, place: int) -> int:
        """Step over a tag that is too long or has a quote too few; after many, in large steps."""
        self._slips += 1
        return _after(self._text, ">", place if self._slips <= _MAX_SLIPS else place + _MAX_TAG)

    def _raw(self, name: str, place: int) -> int:
        """Step over what is no markup, up to the tag that closes it."""
        if name in self._never_closed:
            return place
        found = re.compile(f"</{name}", re.IGNORECASE).search(self._text, place)
        if found is None:
            self._never_closed.add(name)
            return -1 if name in {"script", "style"} else place
        if name == "title" and self._title is None:
            self._title = self._text[place : found.start()]
        return found.start()

    def _note(self, name: str, said: dict[str, str]) -> None:
        if name == "meta":
            if said.get("name", "").lower() in {"robots", "windlass"}:
                self._robots |= robot_words(said.get("content", ""))
        elif name == "base":
            self._base = self._base or said.get("href")
        elif said.get("href") and len(self._links) < _MAX_LINKS and "nofollow" not in said.get("rel", "").lower():
            self._links[said["href"].strip()] = None


def robot_words(text: str) -> set[str]:
    """Read what a page or its server asks of robots."""
    words = {word.strip().lower() for word in text.split(",")}
    return words | ({"noindex", "nofollow"} if "none" in words else set())


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    for found in _ATTRIBUTE.finditer(text):
        yield found[1].lower(), _unescape(found[2] or found[3] or found[4] or "")


def _after(text: str, mark: str, place: int) -> int:
    found = text.find(mark, place)
    return found + len(mark) if found >= 0 else -1


def _unescape(text: str) -> str:
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text))


def _plain(text: str) -> str:
    return " ".join(_unescape(text[:_MAX_TEXT]).split())
