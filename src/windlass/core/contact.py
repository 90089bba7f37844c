"""How long a process has been in touch with the database without a break."""

from __future__ import annotations

from datetime import datetime, timedelta


class Contact:
    """Counts unbroken contact in database time, so that an outage, a suspended machine or a clock jump starts it anew.

    After a break every lease may look expired although its holder is alive and was only cut off with us; one whole lease of
    contact gives every live holder the time to renew.
    """

    def __init__(self, lease: timedelta) -> None:
        """Require one whole `lease` of contact; half a lease without an answer is a break."""
        self._lease = lease
        self._since: datetime | None = None
        self._last: datetime | None = None

    def touch(self, at: datetime) -> bool:
        """Note that the database answered with this time; returns whether contact is steady now."""
        if self._since is None or self._last is None or not timedelta() <= at - self._last <= self._lease / 2:
            self._since = at
        self._last = at
        return self.is_steady

    def lose(self) -> None:
        """Note that the database did not answer."""
        self._since = None

    @property
    def is_steady(self) -> bool:
        """Whether contact has lasted one whole lease."""
        return self._since is not None and self._last is not None and self._last - self._since >= self._lease
