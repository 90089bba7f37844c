"""The backends as applications that the command line can name: `windlass worker windlass.django.application:default`."""

from __future__ import annotations

import logging

from django.core.exceptions import ImproperlyConfigured

from windlass.app import Windlass
from windlass.errors import ConfigError


def __getattr__(alias: str) -> Windlass:
    """Return the application of a backend of TASKS; DJANGO_SETTINGS_MODULE names the project."""
    if alias.startswith("__"):
        raise AttributeError(alias)
    from windlass.django.backends import loaded_app  # noqa: PLC0415 - the settings are read here

    try:
        app = loaded_app(alias)
    except ImproperlyConfigured as error:
        raise ConfigError(str(error)) from error
    _log_once()
    return app


def _log_once() -> None:
    """Take Django's lines off the terminal where the command line shows every line already, as it does for a worker."""
    log = logging.getLogger("django")
    if logging.getLogger().handlers:
        # A file is one too, and stays.
        for handler in [one for one in log.handlers if type(one) is logging.StreamHandler]:
            log.removeHandler(handler)
