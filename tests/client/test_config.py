from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from windlass import ConfigError, Settings
from windlass.config import known, load, origins
from windlass.core.pool import parse_pools
from windlass.given_settings import GivenSettings


def loaded(file: Path | None = None, environ: dict[str, str] | None = None, **arguments: Any) -> Settings:
    return load(arguments, environ=environ or {}, file=file or Path("absent.toml"))


def test_defaults_are_the_documented_ones() -> None:
    settings = loaded()
    assert (settings.database_url, settings.port, settings.lease) == ("sqlite:///windlass.db", 8060, timedelta(seconds=20))
    assert (settings.pools, settings.prefetch, settings.accept_unknown) == (parse_pools("fast=3,*=5"), 20, False)
    assert (settings.fast_timeout, settings.timeout, settings.grace) == (
        timedelta(minutes=2),
        timedelta(minutes=20),
        timedelta(seconds=30),
    )


def test_arguments_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text('port = 1\nhost = "h"\nlease_seconds = 5\n')
    settings = loaded(file, {"WINDLASS_PORT": "2", "WINDLASS_HOST": "env"}, port=3)
    assert (settings.port, settings.host, settings.lease) == (3, "env", timedelta(seconds=5))
    found = origins({"port": 3, "grace": None}, environ={"WINDLASS_PORT": "2", "WINDLASS_HOST": "env"}, file=file)
    assert found == {"port": "argument", "host": "environment", "lease": "file"}


def test_a_none_among_the_arguments_was_not_given() -> None:
    assert loaded(environ={"WINDLASS_PORT": "2"}, port=None).port == 2


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("WINDLASS_POOLS", "fast=1, *=2,slow=9", "pools", parse_pools("fast=1,*=2,slow=9")),
        ("WINDLASS_TASKS", "email, crawl", "tasks", ("email", "crawl")),
        ("WINDLASS_LEASE_SECONDS", "30", "lease", timedelta(seconds=30)),
        ("WINDLASS_POLL_INTERVAL", "250ms", "poll_interval", timedelta(milliseconds=250)),
        ("WINDLASS_ACCEPT_UNKNOWN", "on", "accept_unknown", True),
        ("WINDLASS_ACCEPT_UNKNOWN", "false", "accept_unknown", False),
        ("WINDLASS_RETRY_JITTER", "0.25", "retry_jitter", 0.25),
        ("WINDLASS_GRACE", "0", "grace", timedelta()),
        ("WINDLASS_SMTP_URL", "smtp://u:p@localhost:25", "smtp_url", "smtp://u:p@localhost:25"),
        ("WINDLASS_SMTP_URL", "smtps://u:p@mail.example.org", "smtp_url", "smtps://u:p@mail.example.org"),
        ("WINDLASS_MAIL_FROM", "Shop <shop@example.org>", "mail_from", "Shop <shop@example.org>"),
        ("STALE_DAYS", "7", "stale_days", 7),
        ("RESET_CRAWLING_AFTER_MIN", "3", "reset_crawling_after", timedelta(minutes=3)),
        ("LEASE_SEC_DEFAULT", "60", "pull_lease", timedelta(seconds=60)),
        ("BACKOFF_BASE_SEC", "5", "pull_backoff_base", timedelta(seconds=5)),
        ("WORKER_FAST_THREADS", "7", "pools", parse_pools("fast=7,*=5")),
        ("WORKER_GENERAL_THREADS", "2", "pools", parse_pools("fast=3,*=2")),
    ],
)
def test_variables_are_read(name: str, text: str, attribute: str, value: Any) -> None:
    assert getattr(loaded(environ={name: text}), attribute) == value


def test_our_own_name_for_the_pools_beats_the_seeds() -> None:
    assert loaded(environ={"WINDLASS_POOLS": "*=1", "WORKER_FAST_THREADS": "9"}).pools == parse_pools("*=1")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WINDLASS_PORT", "http"),
        ("WINDLASS_PORT", "70000"),
        ("WINDLASS_LEASE_SECONDS", "0"),
        ("WINDLASS_LEASE_SECONDS", "-5"),
        ("WINDLASS_POOLS", "fast"),
        ("WINDLASS_POOLS", "fast=1,fast=2"),
        ("WINDLASS_POOLS", "=3"),
        ("WINDLASS_POOLS", "fast=0"),
        ("WINDLASS_POOLS", ""),
        ("WINDLASS_TASKS", "a,,b"),
        ("WINDLASS_ACCEPT_UNKNOWN", "maybe"),
        ("WINDLASS_RETRY_JITTER", "2"),
        ("WINDLASS_RETRY_JITTER", "nan"),
        ("WINDLASS_DATABASE_URL", " "),
        ("LEASE_SEC_DEFAULT", "10"),
        ("WORKER_FAST_THREADS", "none"),
        ("WINDLASS_MAIL_FROM", "nobody"),
        ("WINDLASS_MAIL_FROM", "a@b\r\nBcc: c@d"),
    ],
)
def test_a_bad_value_is_named_with_its_variable(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: ") as refused:
        loaded(environ={name: text})
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("name", ["ADMIN_TOKEN", "JWT_SECRET", "WORKER_SECRET", "WORKER_SIGNING_SECRET", "WEBHOOK_SECRET"])
def test_a_short_secret_is_refused_with_the_remedy_and_not_shown(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^WINDLASS_{name}: .*at least 16 characters; make one with `python3") as refused:
        loaded(environ={f"WINDLASS_{name}": "fifteen-letters"})
    assert "fifteen" not in str(refused.value)


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(ConfigError, match=r"must be a text$"):
        loaded(admin_token=5)
    assert "hunter2" not in repr(loaded(environ={"WINDLASS_JWT_SECRET": "hunter2" * 5}))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("WINDLASS_SMTP_URL", "http://hunter2@example.org", "must be like smtp://"),
        ("WINDLASS_SMTP_URL", "smtp://:hunter2", "must be like smtp://"),
        ("WINDLASS_SMTP_URL", "smtp://hunter2:99999", "must be like smtp://"),
        ("WINDLASS_SMTP_URL", "smtp://[hunter2", "must be like smtp://"),
        ("WINDLASS_SMTP_URL", "smtp://host/hunter2", "must be like smtp://"),
        ("WINDLASS_SMTP_URL", "smtp://me:hunter2@mail.example.org", "only smtp+starttls:// or smtps://"),
        ("WINDLASS_WEBHOOK_SECRET", "hunter2", "at least 16"),
    ],
)
def test_a_bad_secret_is_named_and_not_shown(name: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(environ={name: text})
    assert str(refused.value).startswith(f"{name}: ")
    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_an_unknown_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^WINDLASS_LEASE_SECOND is not a setting; did you mean WINDLASS_LEASE_SECONDS"):
        loaded(environ={"WINDLASS_LEASE_SECOND": "5"})
    assert loaded(environ={"WINDLASS_TEST_LONG": "1", "OTHER": "x"}) == loaded()


def test_an_unknown_key_is_an_error_that_names_it_and_its_file(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text("prot = 5\n")
    with pytest.raises(ConfigError, match=r"windlass\.toml: prot is not a setting; did you mean port"):
        loaded(file)
    with pytest.raises(ConfigError, match="argument prot is not a setting"):
        loaded(prot=5)


@pytest.mark.parametrize(
    "text",
    [
        "port = ",
        "port = 'x'",
        'pools = "fast"',
        "pools = 5",
        "pools = [1]",
        "pools = {fast = true}",
        "pools = {fast = 0}",
        "tasks = [1]",
        "accept_unknown = 5",
        "lease_seconds = true",
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"windlass\.toml: "):
        loaded(file)


def test_a_file_may_use_its_own_types(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text('tasks = ["a"]\naccept_unknown = true\nretry_jitter = 0.5\nlease_seconds = 2.5\n[pools]\nfast = 1\n"*" = 2\n')
    settings = loaded(file)
    assert (settings.tasks, settings.accept_unknown, settings.retry_jitter) == (("a",), True, 0.5)
    assert (settings.lease, settings.pools) == (timedelta(seconds=2.5), parse_pools("fast=1,*=2"))


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        loaded(tmp_path)


def test_profiles_follow_the_settings() -> None:
    settings = loaded(environ={"WINDLASS_RETRY_BASE": "2s", "MAX_ATTEMPTS_DEFAULT": "9", "BACKOFF_MAX_SEC": "50"})
    assert settings.profiles["task"].policy.base == timedelta(seconds=2)
    assert (settings.profiles["pull"].max_attempts, settings.profiles["pull"].policy.cap) == (9, timedelta(seconds=50))
    assert settings.profiles["crawl"].max_attempts == 4
    assert settings.breaker("smtp").threshold == 5


def test_every_name_is_used_once() -> None:
    assert len({setting.variable for setting in known()}) == len({setting.key for setting in known()}) == len(known())


def test_every_setting_is_a_typed_argument() -> None:
    assert set(GivenSettings.__annotations__) == {one.key for one in known()} - {"database_url"}
