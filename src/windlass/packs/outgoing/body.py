"""The body of an answer, read and unpacked within a limit."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Mapping
from enum import Enum, auto

from windlass.packs.outgoing.errors import BodyTooLarge, Unreachable

_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAGIC = b"\x1f\x8b"
_MAX_ENCODINGS = 2
# Each member costs a copy of what is left: a body of a million empty ones would take hours.
_MAX_MEMBERS = 100


class Wanted(Enum):
    """What a caller wants of an answer's body."""

    WHOLE = auto()
    """All of it, or an error."""
    BEGINNING = auto()
    """As much as the limit allows."""
    IF_READABLE = auto()
    """All of it, or the reason why not: the status counts whatever the body is."""
    NOTHING = auto()


async def read_body(chunks: AsyncIterable[bytes], headers: Mapping[str, str], limit: int, *, cuts: bool = False) -> bytes:
    """Read to the end and unpack; as soon as either is more than `limit` bytes it is cut off, or raises BodyTooLarge."""
    packed = bytearray()
    async for chunk in chunks:
        packed += chunk
        if len(packed) > limit:
            if not cuts:
                raise too_large(limit)
            break
    names = [name.strip().lower() for name in headers.get("content-encoding", "").split(",")]
    encodings = [name for name in names if name not in {"", "identity"}]
    if len(encodings) > _MAX_ENCODINGS:
        raise Unreachable(f"the answer is packed {len(encodings)} times")
    body = bytes(packed[:limit])
    for name in reversed(encodings):
        body = _unpack(name, body, limit, cuts=cuts)
    return body


def too_large(limit: int) -> BodyTooLarge:
    """Make the error for an answer that is too large."""
    return BodyTooLarge(f"the answer is larger than {limit} bytes")


def _unpack(name: str, body: bytes, limit: int, *, cuts: bool) -> bytes:
    if not body:
        return body
    try:
        if name in {"gzip", "x-gzip"}:
            return _members(body, limit, cuts=cuts)
        if name == "deflate":
            return _deflate(body, limit, cuts=cuts)
    except zlib.error as error:
        raise Unreachable(f"the answer cannot be unpacked: {error}") from None
    raise Unreachable(f"the answer is packed as {name[:40]!r}, which was not asked for")


def _members(body: bytes, limit: int, *, cuts: bool) -> bytes:
    """Unpack gzip, which may be several files in a row; what follows that is not one is padding."""
    found = bytearray()
    for _ in range(_MAX_MEMBERS):
        part, body = _inflate(body, _GZIP, limit - len(found), cuts=cuts)
        found += part
        if not body.startswith(_MAGIC):
            return bytes(found)
    raise Unreachable(f"the answer is packed in more than {_MAX_MEMBERS} parts")


def _deflate(body: bytes, limit: int, *, cuts: bool) -> bytes:
    """Unpack deflate as the standard has it, or bare, as many servers send it."""
    try:
        return _inflate(body, _ZLIB, limit, cuts=cuts)[0]
    except zlib.error:
        return _inflate(body, _RAW, limit, cuts=cuts)[0]


def _inflate(body: bytes, form: int, limit: int, *, cuts: bool) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(form)
    found = stream.decompress(body, limit + 1)
    if cuts and (len(found) > limit or not stream.eof):
        return found[:limit], b""
    if len(found) > limit:
        raise too_large(limit)
    if not stream.eof:
        raise zlib.error("it ends too early")
    return found, stream.unused_data
