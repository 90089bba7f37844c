"""Counts what an address has done in the last minute or so, in bounded memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

_WINDOW_S = 60.0
_MOST_ADDRESSES = 10_000


class RateLimit:
    """Allows each address so many in a window of time; of too many addresses the oldest is dropped."""

    def __init__(self, most: int, *, window_s: float = _WINDOW_S, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start empty."""
        self._most = most
        self._window_s = window_s
        self._monotonic = monotonic
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait_for(self, address: str) -> float:
        """Return for how many seconds an address has to wait; 0 when it need not."""
        started, count = self._windows.get(network_of(address), (0.0, 0))
        left = started + self._window_s - self._monotonic()
        return left if count >= self._most and left > 0 else 0.0

    def record(self, address: str) -> bool:
        """Count one more; False when it is too many."""
        network, now = network_of(address), self._monotonic()
        started, count = self._windows.get(network, (now, 0))
        if started + self._window_s <= now:
            self._windows.pop(network, None)
            started, count = now, 0
        self._windows[network] = started, count + 1
        if len(self._windows) > _MOST_ADDRESSES:
            self._windows.popitem(last=False)
        return count < self._most


def network_of(address: str) -> str:
    """Take an IPv6 client by its /64, which is what one customer gets."""
    if ":" not in address:
        return address
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(int(parsed) >> 64) if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None else address
