"""What a server does before it listens: no open door by accident."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.serving import Served
from windlass import ConfigError, Windlass
from windlass.core.access import NewToken, Role
from windlass.web.listener import bind
from windlass.web.rate_limit import RateLimit
from windlass.web.server import build_server
from windlass.web.start import Line, greeting, is_loopback, prepare


async def test_the_first_start_makes_an_admin_token_and_later_ones_do_not(url: str) -> None:
    async with Windlass(url) as app:
        secret = await prepare(build_server(app))
        assert secret is not None
        token = await (await app.store()).tokens.find(secret)
        assert token is not None
        assert token.role is Role.ADMIN
        assert await prepare(build_server(app)) is None


@pytest.mark.parametrize("settings", [{"admin_token": "x" * 16}, {"jwt_secret": "j" * 32}, {"worker_secret": "x" * 16}])
async def test_what_is_configured_needs_no_first_token(url: str, settings: dict[str, Any]) -> None:
    async with Windlass(url, host="0.0.0.0", **settings) as app:
        assert await prepare(build_server(app)) is None
        assert await (await app.store()).tokens.list() == []


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("a" * 40, "different characters"),
        ("hunter2-hunter2-hunter2-", "repeats"),
        ("8361940275839201", "digits"),
        ("my-Password-for-windlass", "tries first"),
        ("a-secret-of-workers", None),
        ("Jx0W5vY8s1qCkU3mZ7bD9eRt", None),
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_weak_secret_is_warned_about_without_showing_it(
    url: str, caplog: pytest.LogCaptureFixture, secret: str, why: str | None
) -> None:
    async with Windlass(url, worker_secret=secret) as app:
        await prepare(build_server(app))
    assert ("WINDLASS_WORKER_SECRET" in caplog.text) is (why is not None)
    assert why is None or why in caplog.text
    assert secret not in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
async def test_nobody_listens_to_others_without_credentials(url: str, host: str) -> None:
    async with Windlass(url, host=host) as app:
        with pytest.raises(ConfigError, match="WINDLASS_ADMIN_TOKEN"):
            await prepare(build_server(app))
        await (await app.store()).tokens.mint(NewToken(name="x", role=Role.ADMIN))
        assert await prepare(build_server(app)) is None


@pytest.mark.parametrize(
    ("host", "is_it"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.8.9.1", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, is_it: bool) -> None:  # noqa: FBT001 - a case
    assert is_loopback(host) == is_it


def told(lines: list[Line]) -> str:
    return "\n".join(f"{line.label} {line.text}" for line in lines)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_greeting_has_a_link_and_a_curl_line_that_work(web: Served, url: str) -> None:
    async with Windlass(url) as app:
        server = build_server(app)
        lines = told(greeting(server, 8060, None, is_private=True))
        bearer = lines.partition("Bearer ")[2].partition('"')[0]
        code = lines.partition("code=")[2].partition(" ")[0]
        assert (await server.credentials.identify({b"authorization": f"Bearer {bearer}".encode()}, "a")).role is Role.ADMIN
        assert server.credentials.use_code(code)
        public = told(greeting(server, 8060, None, is_private=False))
        assert "code=" not in public
        assert "Bearer" not in public
    lines = told(greeting(web.server, 8060, None, is_private=True))
    assert "$WINDLASS_ADMIN_TOKEN" in lines
    assert "static-admin-token" not in lines


def test_a_port_that_is_taken_is_named() -> None:
    with bind("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigError, match="cannot listen"):
        bind("nowhere.invalid", 0)


def test_attempts_are_counted_by_the_minute_in_bounded_memory() -> None:
    now = 0.0
    attempts = RateLimit(2, monotonic=lambda: now)
    assert [attempts.record("a") for _ in range(3)] == [True, True, False]
    assert attempts.wait_for("a") == 60
    assert attempts.wait_for("b") == 0
    now = 60.0
    assert attempts.wait_for("a") == 0
    assert attempts.record("a")
    for number in range(20_000):
        attempts.record(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(attempts._windows) == 10_000


def test_an_ipv6_customer_is_one_address() -> None:
    attempts = RateLimit(1)
    attempts.record("2001:db8:1:2::1")
    assert attempts.wait_for("2001:db8:1:2:ffff::9") > 0
    assert attempts.wait_for("2001:db8:1:3::1") == 0
