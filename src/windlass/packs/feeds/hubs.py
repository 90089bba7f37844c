"""Asks hubs to send what is new, so that it need not be waited for."""

from __future__ import annotations

import logging
import secrets

from windlass.app import Windlass
from windlass.core.feed import Feed
from windlass.core.websub import request_body, wants_hub
from windlass.errors import WindlassError
from windlass.packs.outgoing import OutgoingError, outgoing

log = logging.getLogger("windlass.packs.feeds")

_FORM = {"content-type": "application/x-www-form-urlencoded"}
_GOOD = range(200, 300)
# The spec allows a secret of less than 200 bytes.
_SECRET_BYTES = 32


class HubRefused(WindlassError):
    """A hub did not take a request."""


class Hubs:
    """The hubs of an application's feeds; without a public address they have nowhere to send to."""

    def __init__(self, app: Windlass) -> None:
        """Ask by the settings of `app`."""
        self._app = app
        self._has_said = False

    @property
    def is_on(self) -> bool:
        """Whether hubs can reach us."""
        return self._app.settings.public_url is not None

    async def look_at(self, feed: Feed) -> None:
        """Ask a feed's hub, if there is one and it is time; a hub that does not answer costs nothing, as the feed is polled."""
        if feed.websub_hub is None or not self._is_reachable():
            return
        if not wants_hub(feed, await (await self._app.store()).clock()):
            return
        try:
            await self.ask(feed)
        except (HubRefused, OutgoingError) as error:
            log.warning("the hub of feed %d was not asked: %s", feed.id, error)

    def _is_reachable(self) -> bool:
        if not self.is_on and not self._has_said:
            self._has_said = True
            log.info("feeds with a hub are polled only: WINDLASS_PUBLIC_URL is not set, so no hub could reach us")
        return self.is_on

    async def ask(self, feed: Feed) -> None:
        """Ask for a subscription, or for more of it; the hub answers by our callback. Raises HubRefused, OutgoingError."""
        store = await self._app.store()
        # Kept first: the hub may call back before it has answered us.
        asked = await store.feeds.ask_websub(feed.id, secrets.token_urlsafe(_SECRET_BYTES), secrets.token_urlsafe(_SECRET_BYTES))
        hub, public_url = asked.websub_hub, self._app.settings.public_url
        if hub is None or public_url is None:
            return
        answer = await outgoing(self._app).send("POST", hub, headers=_FORM, body=request_body(asked, public_url))
        if answer.status not in _GOOD:
            raise HubRefused(f"{hub} answered {answer.status}")
