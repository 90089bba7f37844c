"""Messages between a worker and its child process: JSON values over a socket, each behind its length."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from json import JSONDecoder, JSONEncoder
from typing import Any

from windlass.errors import WindlassError

MAX_FRAME = 2**24
"""Bytes; a payload and a result of the greatest size fit many times over."""

_HEADER = 4
CHUNK = 65_536
_ENCODER = JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = JSONDecoder()


class BadFrame(WindlassError):
    """A message that cannot be sent, or bytes that are no message."""


def encode_frame(message: Any) -> bytes:
    """Write one message."""
    try:
        # Half surrogate pairs pass: what text is good enough to store is decided elsewhere.
        body = _ENCODER.encode(message).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadFrame(f"the message is not JSON: {error}") from error
    if len(body) > MAX_FRAME:
        raise BadFrame(f"the message has {len(body)} bytes, more than {MAX_FRAME}")
    return len(body).to_bytes(_HEADER) + body


class Frames:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        """Start with no bytes."""
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Return every message that is complete now."""
        self._bytes += data
        messages: list[Any] = []
        at = 0
        while len(self._bytes) - at >= _HEADER:
            end = at + _HEADER + self._length(at)
            if len(self._bytes) < end:
                break
            messages.append(_decode(self._bytes[at + _HEADER : end]))
            at = end
        del self._bytes[:at]
        return messages

    def _length(self, at: int) -> int:
        length = int.from_bytes(self._bytes[at : at + _HEADER])
        if length > MAX_FRAME:
            raise BadFrame(f"a message claims to have {length} bytes, more than {MAX_FRAME}")
        return length


def _decode(body: bytearray) -> Any:
    try:
        return _DECODER.decode(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"{bytes(body[:40])!r} is not JSON: {error}") from error


class Channel:
    """One end of the socket on an event loop; calls `received` with every message, and `lost` once the other end is gone."""

    def __init__(
        self,
        end: socket.socket,
        loop: asyncio.AbstractEventLoop,
        *,
        received: Callable[[Any], None],
        lost: Callable[[Exception], None],
    ) -> None:
        """Listen from now on."""
        end.settimeout(0)
        self._end = end
        self._loop = loop
        self._received = received
        self._lost = lost
        self._frames = Frames()
        self._unsent = bytearray()
        self._is_reading = False
        self._is_open = True
        self.resume()

    def send(self, frame: bytes) -> None:
        """Send what `encode_frame` wrote as soon as the other end takes it; what follows the other's loss is dropped."""
        if not self._is_open:
            return
        if not self._unsent:
            sent = self._push(frame)
            if sent == len(frame):
                return
            frame = frame[sent:]
            if self._is_open:
                self._loop.add_writer(self._end.fileno(), self._flush)
        self._unsent += frame

    def pause(self) -> None:
        """Leave messages in the socket, so that the other end has to wait."""
        if self._is_reading:
            self._loop.remove_reader(self._end.fileno())
            self._is_reading = False

    def resume(self) -> None:
        """Listen again."""
        if self._is_open and not self._is_reading:
            self._loop.add_reader(self._end.fileno(), self._read)
            self._is_reading = True

    def wait(self, timeout_s: float) -> None:
        """Block until something can be read, or sent if anything waits for that; for when the event loop stands still."""
        poll = select.poll()
        poll.register(self._end.fileno(), select.POLLIN | (select.POLLOUT if self._unsent else 0))
        poll.poll(timeout_s * 1000)

    def pump(self) -> None:
        """Do now what the event loop would do."""
        if self._unsent:
            self._flush()
        while self._read():
            pass

    def drain(self) -> None:
        """Read all that the other end sent before it died, then close."""
        while self._is_open and self._read():
            pass
        self.close()

    def close(self) -> None:
        """Close the socket without a call of `lost`."""
        if self._is_open:
            self.pause()
            self._loop.remove_writer(self._end.fileno())
            self._is_open = False
            self._end.close()

    def disown(self) -> None:
        """Close the socket in a forked copy, without touching the event loop that it shares with the original."""
        self._is_open = False
        self._end.close()

    def _read(self) -> bool:
        """Hand on what has come, and return whether there may be more."""
        if not self._is_open:
            return False
        try:
            data = self._end.recv(CHUNK)
            if not data:
                self._lose(EOFError("it closed its end"))
            else:
                for message in self._frames.feed(data):
                    self._received(message)
        except (BlockingIOError, InterruptedError):
            return False
        except (OSError, BadFrame) as error:
            self._lose(error)
        return self._is_open

    def _push(self, data: bytes | bytearray) -> int:
        try:
            return self._end.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._lose(error)
            return 0

    def _flush(self) -> None:
        del self._unsent[: self._push(self._unsent)]
        if self._is_open and not self._unsent:
            self._loop.remove_writer(self._end.fileno())

    def _lose(self, why: Exception) -> None:
        self.close()
        self._lost(why)
