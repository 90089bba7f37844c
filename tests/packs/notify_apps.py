"""Applications with the pack `notify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.stores import fresh_url
from windlass import Windlass, packs

SENDER = "Shop <shop@example.org>"


def notifying(folder: Path, **settings: Any) -> Windlass:
    """Make an application on a file of its own, which may reach this machine."""
    with fresh_url("sqlite-file", folder, None) as url:
        app = Windlass(url, mail_from=SENDER, allow_private_addresses=True, **settings)
    packs.install(app, ["notify"])
    return app
