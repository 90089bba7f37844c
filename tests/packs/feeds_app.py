"""The application whose worker the campaign kills."""

from __future__ import annotations

import os

from windlass import Windlass, packs
from windlass.packs.feeds import download
from windlass.packs.outgoing import Limits

# A feed that never answers should not hold up the test, and one that does should have the time it needs on a busy machine.
download.LIMITS = Limits(total_s=15.0 if os.environ.get("WINDLASS_TEST_LONG") == "1" else 3.0)
app = Windlass(name="feeds", allow_private_addresses=True)
packs.install(app, ["feeds"])
