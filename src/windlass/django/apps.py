"""The application of Django that INSTALLED_APPS names."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class WindlassConfig(AppConfig):
    """Brings the commands, and keeps the tables up to date with `migrate`."""

    name = "windlass.django"
    label = "windlass"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Windlass"

    def ready(self) -> None:
        """Migrate whenever Django does, so that the database of a test run has the tables too; let `check` look at TASKS."""
        from windlass.django.tasks_api import import_checks  # noqa: PLC0415 - not before the applications are loaded

        post_migrate.connect(_migrate, sender=self)
        import_checks()


def _migrate(*, using: str, verbosity: int = 1, **_: Any) -> None:
    from windlass.django.migrating import migrate  # noqa: PLC0415 - nothing is loaded where nothing migrates

    for name in migrate(using):
        if verbosity:
            print(f"  Windlass: applied {name}")  # noqa: T201 - as `migrate` itself does
