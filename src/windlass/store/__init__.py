"""Jobs in SQLite or PostgreSQL: the same verbs, the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from urllib.parse import unquote, urlsplit

from windlass.core.retry import PROFILES, Profile
from windlass.errors import ConfigError, shown
from windlass.store.blocking import Blocking, BlockingDatabase
from windlass.store.calls.call import MAX_ARMS, STATEMENT_TIMEOUT, Means
from windlass.store.store import Store

# Without prepared statements each claim is planned anew, which is slow for many arms.
_UNPREPARED_ARMS = 8


def open_store(
    url: str,
    *,
    rng: Random,
    profiles: Mapping[str, Profile] = PROFILES,
    listen_url: str | None = None,
    statement_timeout: timedelta = STATEMENT_TIMEOUT,
) -> Store:
    """Open `sqlite:///path`, `sqlite://` (in memory) or `postgresql://…`, for asyncio.

    `?prepare=off` on a PostgreSQL URL makes it work through a transaction pooler. Wake-ups do not pass one: `listen_url` leads to
    the same database past the pooler. `profiles` have what rows leave open about retries, as far as no
    setting in the database does. `statement_timeout` is for PostgreSQL: how long one statement may take, and how long a
    server that does not answer is waited for.
    """
    scheme, rest, prepare = parse_url(url)
    if scheme == "sqlite":
        from windlass.store.sqlite import Sqlite  # noqa: PLC0415 - each driver is loaded only where it is used

        if listen_url is not None:
            raise ConfigError(LISTEN_ELSEWHERE)
        return Store(Sqlite(rest, rng), Means(rng, profiles))
    from windlass.store.postgres import Postgres  # noqa: PLC0415 - an optional dependency

    listen_dsn = None if listen_url is None else _listen_dsn(listen_url)
    database = Postgres(rest, prepare=prepare, listen_dsn=listen_dsn, statement_timeout=statement_timeout)
    return Store(database, Means(rng, profiles, _most_arms(prepare=prepare)))


def open_blocking_store(
    url: str, *, rng: Random, profiles: Mapping[str, Profile] = PROFILES, statement_timeout: timedelta = STATEMENT_TIMEOUT
) -> Store:
    """Open the same for code without an event loop: its coroutines never suspend, `windlass.core.blocking.run` ends them."""
    arms = _most_arms(prepare=parse_url(url)[2])
    database = open_database(url, rng=rng, statement_timeout=statement_timeout)
    return Store(Blocking(database), Means(rng, profiles, arms))


def open_database(url: str, *, rng: Random, statement_timeout: timedelta = STATEMENT_TIMEOUT) -> BlockingDatabase:
    """Open what is below a blocking store, for migrations and views."""
    scheme, rest, prepare = parse_url(url)
    if scheme == "sqlite":
        from windlass.store.sqlite import Sqlite  # noqa: PLC0415 - each driver is loaded only where it is used

        return Sqlite(rest, rng)
    from windlass.store.postgres import SyncPostgres  # noqa: PLC0415 - an optional dependency

    return SyncPostgres(rest, prepare=prepare, statement_timeout=statement_timeout)


def _most_arms(*, prepare: bool) -> int:
    return MAX_ARMS if prepare else _UNPREPARED_ARMS


def parse_url(url: str) -> tuple[str, str, bool]:
    """Return which database a URL is about, where it is, and whether statements may be prepared; raises ConfigError."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"database URL: cannot be read: {error}") from None
    if parts.scheme == "sqlite":
        return "sqlite", _sqlite_path(url, parts.netloc, parts.path), True
    if parts.scheme in {"postgresql", "postgres"}:
        options = [option for option in parts.query.split("&") if option]
        ours = [option.removeprefix("prepare=") for option in options if option.startswith("prepare=")]
        if not set(ours) <= {"on", "off"}:
            raise ConfigError(f"database URL: prepare must be on or off, not {ours[-1]!r}")
        query = "&".join(option for option in options if not option.startswith("prepare="))
        return "postgresql", f"postgresql://{parts.netloc}{parts.path}{query and '?' + query}", "off" not in ours
    # Never the whole of it: it may hold a password.
    raise ConfigError(f"database URL: it must begin with sqlite:/// or postgresql:// (got {shown(url.partition('://')[0][:20])})")


def _listen_dsn(url: str) -> str:
    scheme, dsn, _ = parse_url(url)
    if scheme != "postgresql":
        raise ConfigError(LISTEN_ELSEWHERE)
    return dsn


LISTEN_ELSEWHERE = "listen_url: only PostgreSQL has one, and it begins with postgresql://"


def _sqlite_path(url: str, host: str, path: str) -> str:
    if host:
        raise ConfigError(
            f"database URL {url!r}: a SQLite URL has three slashes before a relative path, four before an absolute one"
        )
    name = unquote(path.removeprefix("/"))
    return name or ":memory:"


__all__ = ["Store", "open_blocking_store", "open_database", "open_store", "parse_url"]
