"""Which names the server answers to: a page elsewhere must not reach it under a name of its own (DNS rebinding)."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Hosts:
    """An allow-list of names."""

    def __init__(self, bind_host: str, allowed: Iterable[str] = ()) -> None:
        """Allow local names, the name bound to, this machine's, and those given; `*.` before a name allows all below it."""
        given = [name.lower().strip("[]") for name in allowed]
        self._names = {*_LOCAL, bind_host.lower(), socket.gethostname().lower(), *given}
        self._suffixes = tuple(name[1:] for name in given if name.startswith("*."))
        self._is_open = "*" in self._names

    def allow(self, header: bytes | None, local_address: str | None) -> bool:
        """Whether a Host header is one of ours; `local_address` is where the connection came in."""
        match = _HOST.fullmatch((header or b"").decode("latin-1").lower())
        if match is None:
            return False
        name = match[1].strip("[]").removesuffix(".")
        return self._is_open or name in self._names or name == local_address or name.endswith(self._suffixes or ("\0",))
