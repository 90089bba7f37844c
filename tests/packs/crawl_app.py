"""An application for workers in processes of their own."""

from __future__ import annotations

from windlass import Windlass, packs

app = Windlass(name="crawler", allow_private_addresses=True, crawl_delay=0)
packs.install(app, ["crawl"])
