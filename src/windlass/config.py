"""Settings from arguments, the environment, windlass.toml and defaults, in this order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints
from urllib.parse import urlsplit

from windlass.core.access import Role
from windlass.core.breaker import BreakerSpec
from windlass.core.durations import parse_duration
from windlass.core.pool import DEFAULT_POOLS, EVERY_LANE, FAST_LANE, MAX_SLOTS, PoolSpec, parse_pools
from windlass.core.record import record
from windlass.core.retention import Retention
from windlass.core.retry import PROFILES, Profile
from windlass.core.settings import SETTINGS, read_setting
from windlass.core.worker import MAX_VERSION
from windlass.errors import ConfigError, InvalidInput, nearest, shown

if TYPE_CHECKING:
    from windlass.core.alert_rules import AlertRule

PREFIX = "WINDLASS_"
FILE = "windlass.toml"
_TESTS = "WINDLASS_TEST_"
_NO_SETTINGS = frozenset({"WINDLASS_TOKEN", "WINDLASS_URL", "WINDLASS_SQLITE_DRIVER"})
"""Read by `windlass.remote`: a program may be an application here and a client of another."""

Parse = Callable[[Any], Any]
_MOST_SECRETS = 2
_LEAST_SECRET = 16
_REMEDY = "make one with `python3 -c 'import secrets; print(secrets.token_urlsafe(32))'`"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text")
    return value


def _whole(low: int, high: int) -> Parse:
    def parse(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ValueError(f"must be a whole number between {low} and {high}")
        return number

    return parse


def _fraction(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number <= 1:
        raise ValueError("must be a fraction from 0 to 1")
    return number


def _flag(value: Any) -> bool:
    known = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    found = known.get(str(value).strip().lower())
    if found is None:
        raise ValueError("must be on or off")
    return found


def _duration(least: timedelta = timedelta()) -> Parse:
    def parse(value: Any) -> timedelta:
        try:
            duration = parse_duration(value)
        except InvalidInput as error:
            raise ValueError(error.reason) from None
        if duration < least:
            raise ValueError(f"must be at least {least.total_seconds():g} s")
        return duration

    return parse


def _names(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    names = tuple(part.strip() for part in parts) if isinstance(parts, list | tuple) and all(map(_is_text, parts)) else ()
    if not names or not all(names):
        raise ValueError("must be a list of names, as in email,crawl")
    return names


_MAIL_PROTOCOLS = frozenset({"smtp", "smtp+starttls", "smtps"})
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_MAIL_SERVER = "must be like smtp://host:25, smtp+starttls://user:password@host:587 or smtps://user:password@host:465"


def _mail_server(value: Any) -> str:
    text = _text(value)
    try:
        parts = urlsplit(text)
        is_sound = parts.scheme in _MAIL_PROTOCOLS and bool(parts.hostname) and parts.port != 0 and parts.path in {"", "/"}
    except ValueError:
        raise ValueError(_MAIL_SERVER) from None
    if not is_sound:
        raise ValueError(_MAIL_SERVER)
    if parts.username is not None and parts.scheme == "smtp" and parts.hostname not in _OWN_HOSTS:
        raise ValueError("has a password, which only smtp+starttls:// or smtps:// may carry to another machine")
    return text


def _mail_from(value: Any) -> str:
    text = _text(value)
    address = text.rpartition("<")[2].removesuffix(">") if text.endswith(">") else text
    local, _, domain = address.rpartition("@")
    if not local or not domain or not address.isascii() or any(mark.isspace() for mark in address) or not text.isprintable():
        raise ValueError("must be a mail address, as in shop@example.org or Shop <shop@example.org>")
    return text


def _mail_to(value: Any) -> str:
    if not str(value).endswith(">"):
        return _mail_from(value)
    raise ValueError("must be a plain mail address, as in ops@example.org")


def _long_secret(value: Any) -> str:
    if len(_text(value)) < _LEAST_SECRET:
        raise ValueError(f"must have at least {_LEAST_SECRET} characters; {_REMEDY}")
    return str(value)


def _secrets(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    secrets = tuple(part.strip() for part in parts) if isinstance(parts, list | tuple) and all(map(_is_text, parts)) else ()
    if not 1 <= len(secrets) <= _MOST_SECRETS or any(len(secret) < _LEAST_SECRET for secret in secrets):
        raise ValueError(
            f"must be one or two secrets with a comma between them, each of at least {_LEAST_SECRET} characters; {_REMEDY}"
        )
    return secrets


def _version(value: Any) -> str:
    text = _text(value).strip()
    if not 1 <= len(text) <= MAX_VERSION or not text.isprintable():
        raise ValueError(f"must be a text of 1 to {MAX_VERSION} printable characters, such as a tag or a commit")
    return text


def _role(value: Any) -> Role:
    try:
        return Role(value)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(Role)}") from None


def _web_address(value: Any) -> str:
    text = _text(value).rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a web address, as in https://jobs.example.org")
    return text


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _alerts(value: Any) -> str:
    from windlass.core.alert_rules import read_rules  # noqa: PLC0415 - only who sets it needs it

    text = _text(value)
    try:
        read_rules(text)
    except InvalidInput as error:
        raise ValueError(f"{shown(error.value)}: {error.reason}") from None
    return text


def _pools(value: Any) -> tuple[PoolSpec, ...]:
    try:
        return parse_pools(value)
    except InvalidInput as error:
        raise ValueError(error.reason) from None


class Read(NamedTuple):
    """How a setting is read, beside its type; it goes by its attribute's name unless another name is given."""

    parse: Parse
    key: str = ""
    """Its name in windlass.toml and as an argument."""
    variable: str = ""
    """Its name in the environment; by default the key with our prefix."""
    is_secret: bool = False


def _minutes(low: int, high: int) -> Parse:
    return lambda value: timedelta(minutes=_whole(low, high)(value))


def _as_seconds(value: Any) -> timedelta:
    return timedelta(seconds=value)


def _knob(name: str, kind: Callable[[Any], Any]) -> Read:
    """Read one of the settings that operators may change while everything runs, within the same bounds."""

    def parse(value: Any) -> Any:
        try:
            return kind(read_setting(name, value))
        except InvalidInput as error:
            raise ValueError(error.reason) from None

    return Read(parse, name.lower(), name)


_KNOBS = ("LEASE_SEC_DEFAULT", "BACKOFF_BASE_SEC", "BACKOFF_MAX_SEC", "MAX_ATTEMPTS_DEFAULT")
_LEASE, _BASE, _CAP, _ATTEMPTS = (int(SETTINGS[name].default) for name in _KNOBS)
_SECOND = timedelta(seconds=1)
_MOMENT = timedelta(milliseconds=1)
_Text = Annotated[str, Read(_text)]
_Secret = Annotated[str | None, Read(_long_secret, is_secret=True)]
_OptionalText = Annotated[str | None, Read(_text)]
_Names = Annotated[tuple[str, ...] | None, Read(_names)]
_Flag = Annotated[bool, Read(_flag)]
_Days = Annotated[int, Read(_whole(0, 36_500))]
_Duration = Annotated[timedelta, Read(_duration())]
_Moment = Annotated[timedelta, Read(_duration(_MOMENT))]
_Interval = Annotated[timedelta, Read(_duration(_SECOND))]


@record(kw_only=True)
class Settings:
    """Every setting."""

    database_url: _Text = "sqlite:///windlass.db"
    statement_timeout: _Interval = timedelta(seconds=10)
    """How long one statement may take on PostgreSQL, and how long a server that does not answer is waited for."""
    listen_url: Annotated[str | None, Read(_text, is_secret=True)] = field(default=None, repr=False)
    """The URL that listens for wake-ups on PostgreSQL: behind a transaction pooler, one that leads to the server itself."""
    version: Annotated[str | None, Read(_version)] = None
    """The version of the application, such as a tag or a commit: dead letters are marked as new by it."""
    host: _Text = "127.0.0.1"
    port: Annotated[int, Read(_whole(0, 65_535))] = 8060
    admin_token: _Secret = field(default=None, repr=False)
    jwt_secret: _Secret = field(default=None, repr=False)
    jwt_public_key: _OptionalText = None
    """A file with the PEM public key that signs web tokens: RSA or Ed25519."""
    jwt_jwks: _OptionalText = None
    """A file with a JSON Web Key Set."""
    jwt_audience: _OptionalText = None
    jwt_issuer: _OptionalText = None
    jwt_default_role: Annotated[Role | None, Read(_role)] = None
    """What a web token without a role of ours may do; None is nothing."""
    worker_secret: _Secret = field(default=None, repr=False)
    worker_signing_secret: Annotated[tuple[str, ...] | None, Read(_secrets, is_secret=True)] = field(default=None, repr=False)
    """What pull workers sign their requests with; a second one, after a comma, is still good while secrets change."""
    metrics_token: _Secret = field(default=None, repr=False)
    """A bearer token that reads `/metrics` and nothing else, for Prometheus; at least 16 characters."""
    allowed_hosts: _Names = None
    """Names the server answers to beside its own; `*.example.org` is every name below, `*` every name."""
    trusted_proxies: _Names = None
    """Addresses whose X-Forwarded-For and X-Forwarded-Proto are used."""
    connections_per_address: Annotated[int, Read(_whole(1, 1_000_000))] = 256
    """How many connections the server takes from one address; loopback and trusted proxies are left out."""
    public_url: Annotated[str | None, Read(_web_address)] = None
    """Where others reach the server: links lead below its path, and hubs are asked to send there. None: they are not asked."""
    max_body_bytes: Annotated[int, Read(_whole(1024, 2**30))] = 8 * 1024 * 1024
    pools: Annotated[tuple[PoolSpec, ...], Read(_pools)] = parse_pools(DEFAULT_POOLS)
    process_per_pool: _Flag = False
    """Whether `windlass worker` runs each pool in a process of its own, so that no lane can hold up another."""
    tasks: _Names = None
    """Which tasks a worker runs; None is all it has code for."""
    lease: Annotated[timedelta, Read(_duration(_SECOND), key="lease_seconds")] = timedelta(seconds=20)
    poll_interval: _Moment = timedelta(seconds=1)
    aging_interval: _Interval = timedelta(minutes=5)
    retention_interval: _Interval = timedelta(minutes=10)
    reclaim_interval: _Moment = timedelta(seconds=2)
    keep_executions: Annotated[int, Read(_whole(1, 1_000_000))] = 100
    keep_days: _Days = 30
    keep_dead_days: _Days = 90
    prefetch: Annotated[int, Read(_whole(0, 500))] = 20
    fast_timeout: _Moment = timedelta(minutes=2)
    timeout: _Moment = timedelta(minutes=20)
    retry_base: _Duration = PROFILES["task"].policy.base
    retry_cap: _Duration = PROFILES["task"].policy.cap
    retry_jitter: Annotated[float, Read(_fraction)] = PROFILES["task"].policy.jitter
    breaker_threshold: Annotated[int, Read(_whole(1, 1_000_000))] = 5
    breaker_open: _Moment = timedelta(seconds=60)
    grace: _Duration = timedelta(seconds=30)
    accept_unknown: _Flag = False
    packs: _Names = None
    allow_private_addresses: _Flag = False
    smtp_url: Annotated[str | None, Read(_mail_server, is_secret=True)] = field(default=None, repr=False)
    """The mail server of `email`, as in `smtp+starttls://user:password@mail.example.org:587` or `smtps://…`."""
    mail_from: Annotated[str | None, Read(_mail_from)] = None
    """The sender of mails, as in `Shop <shop@example.org>`."""
    mail_templates: _OptionalText = None
    """A folder with more mails for `email`, each a file <name>.txt."""
    webhook_secret: _Secret = field(default=None, repr=False)
    """What `webhook` signs its bodies with."""
    alerts: Annotated[str | None, Read(_alerts)] = None
    """Thresholds of alerts that differ, as in `pending=200,for=10m;error_rate=20%;lost_leases=off`; see alerts.md."""
    alert_webhook: Annotated[str | None, Read(_web_address)] = None
    """Where a signed webhook is sent when an alert is raised or cleared; a worker needs the pack `notify`."""
    alert_mail: Annotated[str | None, Read(_mail_to)] = None
    """The address that gets a mail when an alert is raised or cleared; a worker needs the pack `notify`."""
    otel: _Flag = False
    """Whether enqueues and runs are traced and measured by OpenTelemetry; needs the extra `otel`, see tracing.md."""
    crawl_delay: _Duration = timedelta(milliseconds=500)
    """How long a crawl leaves a host alone between two requests, unless its robots.txt asks for more."""
    max_feed_bytes: Annotated[int, Read(_whole(1024, 2**30))] = 2_000_000
    """How large a feed's document may be, as it is sent and as it is unpacked."""
    stale_days: Annotated[int, Read(_whole(1, 36_500), variable="STALE_DAYS")] = 30
    reset_crawling_after: Annotated[
        timedelta, Read(_minutes(1, 525_600), "reset_crawling_after_min", "RESET_CRAWLING_AFTER_MIN")
    ] = timedelta(minutes=15)
    pull_lease: Annotated[timedelta, _knob("LEASE_SEC_DEFAULT", _as_seconds)] = timedelta(seconds=_LEASE)
    pull_backoff_base: Annotated[timedelta, _knob("BACKOFF_BASE_SEC", _as_seconds)] = timedelta(seconds=_BASE)
    pull_backoff_cap: Annotated[timedelta, _knob("BACKOFF_MAX_SEC", _as_seconds)] = timedelta(seconds=_CAP)
    pick_order: Annotated[str, _knob("PICK_ORDER", str)] = "fifo"
    """Which job of lane `pull` comes first among those of one priority."""
    pull_max_attempts: Annotated[int, _knob("MAX_ATTEMPTS_DEFAULT", int)] = _ATTEMPTS

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """What a job's row leaves open about its retries, as it is set here."""
        task, pull = PROFILES["task"], PROFILES["pull"]
        task_policy = replace(task.policy, base=self.retry_base, cap=self.retry_cap, jitter=self.retry_jitter)
        pull_policy = replace(pull.policy, base=self.pull_backoff_base, cap=self.pull_backoff_cap)
        return {
            **PROFILES,
            "task": replace(task, policy=task_policy),
            "pull": Profile(policy=pull_policy, max_attempts=self.pull_max_attempts),
        }

    @property
    def alert_rules(self) -> Mapping[str, AlertRule]:
        """Every rule of alerts, with the thresholds that are set here."""
        from windlass.core.alert_rules import read_rules  # noqa: PLC0415 - only upkeep needs it

        return read_rules(self.alerts or "")

    @property
    def retention(self) -> Retention:
        """How much history stays."""
        return Retention(
            keep_executions=self.keep_executions,
            keep=timedelta(days=self.keep_days),
            keep_dead=timedelta(days=self.keep_dead_days),
        )

    def breaker(self, name: str) -> BreakerSpec:
        """Describe a breaker that is known by name only."""
        return BreakerSpec(name, self.breaker_threshold, self.breaker_open)


class KnownSetting(NamedTuple):
    """A setting and every name it goes by."""

    attribute: str
    key: str
    variable: str
    parse: Parse
    is_secret: bool


@cache
def known() -> tuple[KnownSetting, ...]:
    """List the settings; not before they are asked for, since reading the hints takes a while."""
    found = []
    for attribute, hint in get_type_hints(Settings, include_extras=True).items():
        read: Read = hint.__metadata__[0]
        key = read.key or attribute
        found.append(KnownSetting(attribute, key, read.variable or f"{PREFIX}{key.upper()}", read.parse, read.is_secret))
    return tuple(found)


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Read every source; a None among the arguments was not given. An unknown name or bad value raises ConfigError."""
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    values = _from_file(Path(FILE) if file is None else file)
    values |= _from_environment(os.environ if environ is None else environ)
    values |= _by_key(given, "argument ")
    return Settings(**values)


class SettingOrigin(StrEnum):
    """Where the value of a setting comes from; later members override earlier ones."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    ARGUMENT = "argument"


def origins(
    arguments: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None, file: Path | None = None
) -> dict[str, SettingOrigin]:
    """Return where `load` takes each setting from, by attribute; those at their default are left out."""
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    found = dict.fromkeys(_from_file(Path(FILE) if file is None else file), SettingOrigin.FILE)
    found |= dict.fromkeys(_from_environment(os.environ if environ is None else environ), SettingOrigin.ENVIRONMENT)
    return found | dict.fromkeys(_by_key(given, "argument "), SettingOrigin.ARGUMENT)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    import tomllib  # noqa: PLC0415 - most processes have no such file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    return _by_key(document, f"{path}: ")


def check_settings(names: Iterable[str], source: str = "argument ") -> None:
    """Raise ConfigError for a name that is no setting's, with the nearest one."""
    settings = {setting.key for setting in known()}
    for name in names:
        if name not in settings:
            raise _unknown(f"{source}{name}", name, settings)


def _by_key(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    settings = {setting.key: setting for setting in known()}
    check_settings(values, source)
    return {settings[name].attribute: _parsed(settings[name], f"{source}{name}", value) for name, value in values.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    settings = {setting.variable: setting for setting in known()}
    for name in environ:
        if name.startswith(PREFIX) and not name.startswith(_TESTS) and name not in _NO_SETTINGS and name not in settings:
            raise _unknown(name, name, settings)
    found = {settings[name].attribute: _parsed(settings[name], name, environ[name]) for name in settings if name in environ}
    return _threads(environ) | found


def _threads(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the async jobs system's names for the two pools."""
    names = {FAST_LANE: "WORKER_FAST_THREADS", EVERY_LANE: "WORKER_GENERAL_THREADS"}
    if not any(name in environ for name in names.values()):
        return {}
    default = {pool.lane: pool.slots for pool in parse_pools(DEFAULT_POOLS)}
    setting = KnownSetting("pools", "pools", "", _whole(1, MAX_SLOTS), is_secret=False)
    slots = {lane: _parsed(setting, name, environ.get(name, default[lane])) for lane, name in names.items()}
    return {"pools": parse_pools(slots)}


def _parsed(setting: KnownSetting, name: str, value: Any) -> Any:
    try:
        return setting.parse(value)
    except ValueError as error:
        got = "" if setting.is_secret else f" (got {shown(value)})"
        raise ConfigError(f"{name}: {error}{got}") from None


def _unknown(shown_as: str, name: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(f"{shown_as} is not a setting{nearest(name, known)}")
