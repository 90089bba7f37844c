"""Applications with the pack `notify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.stores import migrate_sqlite
from windlass import Windlass, packs

SENDER = "Shop <shop@example.org>"


def notifying(folder: Path, **settings: Any) -> Windlass:
    """Make an application on a file of its own."""
    path = folder / f"{uuid4().hex}.db"
    migrate_sqlite(path)
    app = Windlass(f"sqlite:///{path}", mail_from=SENDER, allow_private_addresses=True, **settings)
    packs.install(app, ["notify"])
    return app
