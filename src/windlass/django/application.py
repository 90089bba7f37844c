"""The backends as applications that the command line can name: `windlass worker windlass.django.application:default`."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from windlass.app import Windlass
from windlass.errors import ConfigError


def __getattr__(alias: str) -> Windlass:
    """Return the application of a backend of TASKS; DJANGO_SETTINGS_MODULE names the project."""
    if alias.startswith("__"):
        raise AttributeError(alias)
    from windlass.django.backends import loaded_app  # noqa: PLC0415 - the settings are read here

    try:
        return loaded_app(alias)
    except ImproperlyConfigured as error:
        raise ConfigError(str(error)) from error
