"""Jobs in SQLite or PostgreSQL: the same verbs, the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from urllib.parse import unquote, urlsplit

from windlass.core.retry import PROFILES, Profile
from windlass.errors import ConfigError
from windlass.store.calls.work import MAX_ARMS
from windlass.store.sql_store import SqlStore
from windlass.store.sync_store import SyncStore

# Without prepared statements each claim is planned anew, which is slow for many arms.
_UNPREPARED_ARMS = 8


def open_store(url: str, *, rng: Random, profiles: Mapping[str, Profile] = PROFILES) -> SqlStore:
    """Open `sqlite:///path`, `sqlite://` (in memory) or `postgresql://…`, for asyncio.

    `?prepare=off` on a PostgreSQL URL makes it work through a transaction pooler.
    """
    scheme, rest, prepare = _parsed(url)
    if scheme == "sqlite":
        from windlass.store.sqlite import Sqlite  # noqa: PLC0415 - each driver is loaded only where it is used

        return SqlStore(Sqlite(rest, rng), rng=rng, profiles=profiles)
    from windlass.store.postgres import Postgres  # noqa: PLC0415 - an optional dependency

    arms = MAX_ARMS if prepare else _UNPREPARED_ARMS
    return SqlStore(Postgres(rest, prepare=prepare), rng=rng, profiles=profiles, most_arms=arms)


def open_sync_store(url: str, *, rng: Random) -> SyncStore:
    """Open the same for code without an event loop."""
    scheme, rest, prepare = _parsed(url)
    if scheme == "sqlite":
        from windlass.store.sqlite import Sqlite  # noqa: PLC0415 - each driver is loaded only where it is used

        return SyncStore(Sqlite(rest, rng))
    from windlass.store.postgres import SyncPostgres  # noqa: PLC0415 - an optional dependency

    return SyncStore(SyncPostgres(rest, prepare=prepare))


def _parsed(url: str) -> tuple[str, str, bool]:
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return "sqlite", _sqlite_path(url, parts.netloc, parts.path), True
    if parts.scheme in {"postgresql", "postgres"}:
        options = [option for option in parts.query.split("&") if option]
        ours = [option.removeprefix("prepare=") for option in options if option.startswith("prepare=")]
        if not set(ours) <= {"on", "off"}:
            raise ConfigError(f"database URL: prepare must be on or off, not {ours[-1]!r}")
        query = "&".join(option for option in options if not option.startswith("prepare="))
        return "postgresql", f"postgresql://{parts.netloc}{parts.path}{query and '?' + query}", "off" not in ours
    raise ConfigError(f"database URL {url!r}: it must begin with sqlite:/// or postgresql://")


def _sqlite_path(url: str, host: str, path: str) -> str:
    if host:
        raise ConfigError(
            f"database URL {url!r}: a SQLite URL has three slashes before a relative path, four before an absolute one"
        )
    name = unquote(path.removeprefix("/"))
    return name or ":memory:"


__all__ = ["SqlStore", "SyncStore", "open_store", "open_sync_store"]
