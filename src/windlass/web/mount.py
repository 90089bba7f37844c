"""Where the server is mounted: below a path of another application, or of a proxy that hands it what is asked for there."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

_ADDRESS = re.compile(r'( (?:href|src|action|data-href|data-url|data-undo|data-next)=")/(?!/)')
"""An attribute of a page that holds a path of ours. No text of others looks like one: its quotes are escaped."""


class MountedPath(NamedTuple):
    """A path that was asked for, and what stands before it."""

    base: str
    """What every address of ours begins with, as in `/queue`; empty at the root."""
    path: bytes
    """The rest, as it was sent."""


def base_of(address: str | None) -> str:
    """Return the path below which an address of ours lies."""
    return "" if address is None else urlsplit(address).path.rstrip("/")


def mounted_path(raw_path: bytes, root_path: str, public_base: str) -> MountedPath:
    """Take off a path what the application around us (`root_path`) or the public address puts before it.

    A proxy may have taken off its own part already.
    """
    base = quote(root_path.rstrip("/")) or public_base
    prefix = base.encode()
    if base and (raw_path == prefix or raw_path.startswith(prefix + b"/")):
        return MountedPath(base, raw_path[len(prefix) :] or b"/")
    return MountedPath(base, raw_path)


def put_below(base: str, page: str) -> str:
    """Let every link of a page lead below `base`."""
    return _ADDRESS.sub(lambda found: f"{found[1]}{base}/", page) if base else page
