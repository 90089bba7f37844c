"""`manage.py windlass_migrate`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from windlass.django.backends import backends
from windlass.django.migrating import migrate


class Command(BaseCommand):
    """Brings the tables of Windlass up to date, in each database that a backend lives in."""

    help = "Bring the tables of Windlass up to date. `migrate` does it too; this does nothing else."

    def handle(self, *_: Any, **__: Any) -> None:
        """Migrate, and print what was done."""
        for alias in dict.fromkeys(backend.database for backend in backends()):
            applied = migrate(alias)
            for name in applied:
                self.stdout.write(f"{alias}: applied {name}")
            if not applied:
                self.stdout.write(f"{alias}: up to date")
