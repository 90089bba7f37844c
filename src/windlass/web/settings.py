"""Settings that may change while everything runs."""

from __future__ import annotations

import os
from datetime import datetime

from fastapi import Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.settings import SETTINGS, Effective, Origin, StoredSetting
from windlass.web.errors import Refusal
from windlass.web.fields import Body, Listed, PathName
from windlass.web.request_context import operator_of
from windlass.web.route import Route


class SettingIn(Body):
    """A new value."""

    value: int | str


class SettingOut(BaseModel):
    """The value of a setting and where it comes from."""

    name: str
    value: int | str
    origin: Origin
    updated_by: str | None
    updated_at: datetime | None


class SettingsOut(Listed):
    """Every setting, by name."""

    settings: list[SettingOut]


def _out(setting: Effective, stored: StoredSetting | None) -> SettingOut:
    is_stored = stored is not None and setting.origin is Origin.DATABASE
    return SettingOut(
        name=setting.name,
        value=setting.value,
        origin=setting.origin,
        updated_by=stored.updated_by if stored is not None and is_stored else None,
        updated_at=stored.updated_at if stored is not None and is_stored else None,
    )


async def read_settings(request: Request) -> dict[str, SettingOut]:
    """Read every setting that may change while everything runs, by name."""
    settings = operator_of(request).stored_settings
    stored = {row.name: row for row in await settings.all()}
    return {name: _out(one, stored.get(name)) for name, one in (await settings.effective(os.environ)).items()}


def _check_name(name: str) -> None:
    if name not in SETTINGS:
        raise Refusal(404, f"there is no setting {name}; there are {', '.join(SETTINGS)}")


async def list_settings(request: Request) -> SettingsOut:
    """List the value of every setting; one that was set here overrides the environment."""
    found = list((await read_settings(request)).values())
    return SettingsOut(settings=found, total=len(found))


async def get_setting(request: Request, name: PathName) -> SettingOut:
    """Read one setting."""
    _check_name(name)
    return (await read_settings(request))[name]


async def set_setting(request: Request, name: PathName, body: SettingIn) -> SettingOut:
    """Set a value; it holds from the next use on, in every process."""
    _check_name(name)
    await operator_of(request).stored_settings.set(name, body.value)
    return (await read_settings(request))[name]


async def unset_setting(request: Request, name: PathName) -> SettingOut:
    """Take a value back, so that the environment or the default counts again."""
    _check_name(name)
    await operator_of(request).stored_settings.unset(name)
    return (await read_settings(request))[name]


ROUTES = (
    Route("GET", "/api/v1/settings", Role.ADMIN, list_settings),
    Route("GET", "/api/v1/settings/{name}", Role.ADMIN, get_setting, errors=(404,)),
    Route("PUT", "/api/v1/settings/{name}", Role.ADMIN, set_setting, errors=(404,)),
    Route("DELETE", "/api/v1/settings/{name}", Role.ADMIN, unset_setting, errors=(404,)),
)
