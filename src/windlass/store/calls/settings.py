"""Settings: set, unset, and read at the moment a decision needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from windlass.core.audit import Deed
from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME
from windlass.core.payload import encode_object
from windlass.core.retry import Profile
from windlass.core.settings import StoredSetting, from_table, is_pulled, profiles_with, read_setting
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= dict.fromkeys(("set_setting", "unset_setting", "list_settings"), Shape.of(StoredSetting))


def set_setting(name: str, value: object, by: str | None = None) -> Call[StoredSetting]:
    """Set a value that overrides the environment and the default; an unknown name or a bad value is refused."""
    if by is not None:
        check_text("by", by, MAX_NAME)
    params = {"name": name, "value": str(read_setting(name, value))}

    def steps(means: Means) -> Steps[StoredSetting]:
        return _settings((yield Step("set_setting", {**params, "principal": by or means.principal})))[0]

    return Call(steps, is_single=True, deed=_was_set)


def unset_setting(name: str) -> Call[bool]:
    """Take a value back; False when none was set."""
    check_text("name", name, MAX_NAME)
    gone: list[StoredSetting] = []

    def steps(_: Means) -> Steps[bool]:
        gone[:] = _settings((yield Step("unset_setting", {"name": name})))
        return bool(gone)

    return Call(steps, is_single=True, deed=lambda _: _was_unset(name, gone[0] if gone else None))


def list_settings() -> Call[list[StoredSetting]]:
    """Read what the table holds."""
    return single("list_settings", {}, _settings, is_read=True)


def _settings(rows: Sequence[Row]) -> list[StoredSetting]:
    return [StoredSetting(*row) for row in rows]


class Retried(Protocol):
    """What has a retry policy, as a row keeps it."""

    @property
    def retry(self) -> str:
        """The profile and what the enqueuer has set."""
        ...


def current_profiles(jobs: Iterable[Retried], profiles: Mapping[str, Profile]) -> Steps[Mapping[str, Profile]]:
    """Return the profiles as they are set now; the table is read only where a pulled job hangs on it."""
    if not any(is_pulled(job.retry) for job in jobs):
        return profiles
    return profiles_with(from_table(_settings((yield Step("list_settings", {})))), profiles)


def _was_set(setting: StoredSetting) -> Deed:
    return Deed("set setting", f"setting:{setting.name}", "done", encode_object({"value": setting.value}))


def _was_unset(name: str, setting: StoredSetting | None) -> Deed:
    if setting is None:
        return Deed("unset setting", f"setting:{name}", "refused")
    return Deed("unset setting", f"setting:{name}", "done", encode_object({"value": setting.value}))
