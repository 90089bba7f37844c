"""Every setting of this server, where its value comes from, and nothing of what is secret."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from pydantic import BaseModel

from windlass.app import Windlass
from windlass.config import KnownSetting, SettingOrigin, known
from windlass.core.access import Role
from windlass.core.durations import format_duration
from windlass.core.pool import PoolSpec
from windlass.secret_names import REDACTED
from windlass.web.fields import Listed
from windlass.web.request_context import context_of
from windlass.web.route import Route

_PRIVATE_PATHS = frozenset({"alert_webhook"})
"""Addresses whose path is often a secret of its own."""


class ConfiguredOut(BaseModel):
    """A setting of this process."""

    name: str
    """As in windlass.toml."""
    variable: str
    """Its name in the environment."""
    value: str | None
    """As text; null is not set. A secret is only marked as set."""
    origin: SettingOrigin
    is_secret: bool


class ConfigurationOut(Listed):
    """Every setting of this process."""

    configuration: list[ConfiguredOut]


def configuration_of(app: Windlass) -> list[ConfiguredOut]:
    """List the settings of this process, without secrets."""
    return [
        ConfiguredOut(
            name=setting.key,
            variable=setting.variable,
            value=_shown(setting, getattr(app.settings, setting.attribute)),
            origin=app.setting_origins.get(setting.attribute, SettingOrigin.DEFAULT),
            is_secret=setting.is_secret,
        )
        for setting in known()
    ]


def _shown(setting: KnownSetting, value: Any) -> str | None:
    if value is None:
        return None
    if setting.is_secret:
        return REDACTED
    text = _written(value)
    return _without_password(text, is_private=setting.key in _PRIVATE_PATHS) if "://" in text else text


def _written(value: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case timedelta():
            return format_duration(value)
        case PoolSpec():
            return f"{value.lane}={value.slots}"
        case tuple():
            return ", ".join(map(_written, value))
        case _:
            return str(value)


def _without_password(address: str, *, is_private: bool) -> str:
    """Leave out user and password, also those in a query."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    if parts.netloc != host:
        host = f"…@{host}"
    path = "/…" if is_private and parts.path.strip("/") else parts.path
    return f"{parts.scheme}://{host}{path}{'?…' if parts.query else ''}"


async def list_configuration(request: Request) -> ConfigurationOut:
    """List every setting of the server that answers, where it comes from, and no secrets."""
    found = configuration_of(context_of(request).app)
    return ConfigurationOut(configuration=found, total=len(found))


ROUTES = (Route("GET", "/api/v1/configuration", Role.ADMIN, list_configuration),)
