"""The settings of pulling as they are at this moment, read at most once a second."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import NamedTuple

from windlass.app import Windlass
from windlass.core.pull import PickOrder
from windlass.core.settings import from_table

_KNOWN_FOR_S = 1.0


class PullSettings(NamedTuple):
    """What operators may change while everything runs."""

    lease: timedelta
    max_attempts: int
    order: PickOrder


class PullSettingsCache:
    """Keeps the settings for a second, so that a busy server does not read them for every request."""

    def __init__(self, app: Windlass) -> None:
        """Ask the application's store."""
        self._app = app
        self._known: PullSettings | None = None
        self._until = 0.0

    async def current(self) -> PullSettings:
        """Return the settings: the table overrides the environment, the environment the default."""
        if self._known is not None and time.monotonic() < self._until:
            return self._known
        here = self._app.settings
        table = from_table(await self._app.stored_settings.all())
        lease = table.get("LEASE_SEC_DEFAULT")
        self._known = PullSettings(
            here.pull_lease if lease is None else timedelta(seconds=int(lease)),
            int(table.get("MAX_ATTEMPTS_DEFAULT", here.pull_max_attempts)),
            PickOrder(str(table.get("PICK_ORDER", here.pick_order))),
        )
        self._until = time.monotonic() + _KNOWN_FOR_S
        return self._known
