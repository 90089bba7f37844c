"""Settings: set, unset, and read at the moment a decision hangs on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from windlass.core.audit import Deed
from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME
from windlass.core.payload import encode_object
from windlass.core.retry import Profile
from windlass.core.settings import StoredSetting, from_table, is_pulled, profiles_with, read_setting
from windlass.store.calls.call import Call, Step, Steps, single
from windlass.store.rows import Row, Shape

SHAPES = {"set_setting": Shape((3,)), "unset_setting": Shape((3,)), "list_settings": Shape((3,))}


def set_setting(name: str, value: object, by: str | None = None) -> Call[StoredSetting]:
    """Set what beats the environment and the default from now on."""
    if by is not None:
        check_text("by", by, MAX_NAME)
    params = {"name": name, "value": str(read_setting(name, value)), "principal": by}
    return single("set_setting", params, lambda found: _settings(found)[0])


def unset_setting(name: str) -> Call[StoredSetting | None]:
    """Take a setting back; None when the table did not hold it."""
    check_text("name", name, MAX_NAME)
    return single("unset_setting", {"name": name}, lambda found: _settings(found)[0] if found else None)


def list_settings() -> Call[list[StoredSetting]]:
    """Read what the table holds."""
    return single("list_settings", {}, _settings, is_read=True)


def _settings(rows: Sequence[Row]) -> list[StoredSetting]:
    return [StoredSetting(*row) for row in rows]


class Retried(Protocol):
    """What has a retry policy, as a row keeps it."""

    @property
    def retry(self) -> str:
        """The profile and what the enqueuer gave."""
        ...


def current_profiles(jobs: Iterable[Retried], profiles: Mapping[str, Profile]) -> Steps[Mapping[str, Profile]]:
    """Give the profiles as they are set now; the table is read only where a pulled job hangs on it."""
    if not any(is_pulled(job.retry) for job in jobs):
        return profiles
    return profiles_with(from_table(_settings((yield Step("list_settings", {})))), profiles)


def was_set(setting: StoredSetting) -> Deed:
    """Tell of a new value."""
    return Deed("set setting", f"setting:{setting.name}", "done", encode_object({"value": setting.value}))


def was_unset(name: str, setting: StoredSetting | None) -> Deed:
    """Tell of a value taken back."""
    if setting is None:
        return Deed("unset setting", f"setting:{name}", "refused")
    return Deed("unset setting", f"setting:{name}", "done", encode_object({"value": setting.value}))
