"""The application whose worker the campaign kills."""

from __future__ import annotations

from windlass import Windlass, packs
from windlass.packs.feeds import download
from windlass.packs.outgoing import Limits

# A feed that never answers should not hold up the test.
download.LIMITS = Limits(total_s=1.0)
app = Windlass(name="feeds", allow_private_addresses=True)
packs.install(app, ["feeds"])
