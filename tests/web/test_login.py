"""Browsers: logging in, the session cookie, the CSRF token, logging out."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlencode

import httpx2
import pytest

from tests.web.serving import Served, served
from tests.web.test_web_tokens import NOW, signed
from windlass import Windlass
from windlass.core.access import Role
from windlass.web.credentials import COOKIE

FORM = {"content-type": "application/x-www-form-urlencoded"}


async def log_in(web: Served, token: str, **fields: str) -> httpx2.Response:
    return await web.client.post("/login", content=urlencode({"token": token, **fields}), headers=FORM)


async def csrf_of(web: Served) -> str:
    return str((await web.client.get("/api/v1/session")).json()["csrf"])


async def test_a_token_opens_a_session_that_needs_its_csrf_token_to_change_anything(web: Served) -> None:
    answer = await log_in(web, web.tokens[Role.OPERATOR], next="/reference")
    assert (answer.status_code, answer.headers["location"]) == (303, "/reference")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"))
    assert "Secure" not in cookie
    session = (await web.client.get("/api/v1/session")).json()
    assert session["role"] == "operator"
    assert (await web.client.post("/api/v1/lanes/default/pause")).status_code == 403
    wrong = await web.client.post("/api/v1/lanes/default/pause", headers={"x-csrf-token": "x" + session["csrf"][1:]})
    assert (wrong.status_code, "csrf" in wrong.json()["error"]) == (403, True)
    paused = await web.client.post("/api/v1/lanes/default/pause", headers={"x-csrf-token": session["csrf"]})
    assert paused.status_code == 200
    assert paused.json()["paused_by"].endswith(":operator")
    assert (await web.client.get("/api/v1/tokens")).status_code == 403


async def test_the_cookie_is_kept_only_as_a_digest(web: Served) -> None:
    await log_in(web, "static-admin-token")
    cookie = web.client.cookies[COOKIE]
    store = await web.app.store()
    assert await store.sessions.find(cookie) is None
    assert (await store.sessions.find(web.server.credentials.session_digest(cookie.encode()))) is not None


async def test_logging_out_ends_the_session_at_once(web: Served) -> None:
    await log_in(web, "static-admin-token")
    csrf, cookie = await csrf_of(web), web.client.cookies[COOKIE]
    assert (await web.client.post("/logout", content=urlencode({"csrf": "no"}), headers=FORM)).status_code == 403
    assert (await web.client.get("/api/v1/session")).status_code == 200
    answer = await web.client.post("/logout", content=urlencode({"csrf": csrf}), headers=FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    again = await web.client.get("/api/v1/session", headers={"cookie": f"{COOKIE}={cookie}"})
    assert again.status_code == 401


async def test_a_revoked_token_takes_its_sessions_with_it(web: Served) -> None:
    await log_in(web, web.tokens[Role.VIEWER])
    assert (await web.client.get("/api/v1/session")).status_code == 200
    viewer = next(one for one in (await web.ask("GET", "/api/v1/tokens")).json()["tokens"] if one["role"] == "viewer")
    assert (await web.ask("DELETE", f"/api/v1/tokens/{viewer['id']}")).status_code == 200
    web.server.credentials._known.clear()  # a second later
    assert (await web.client.get("/api/v1/session")).status_code == 401
    assert (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).status_code == 401


async def test_a_login_link_works_once(web: Served) -> None:
    code = web.server.credentials.new_code()
    answer = await web.client.get(f"/login?code={code}")
    assert (answer.status_code, 'content="0;url=/"' in answer.text) == (200, True)
    assert (await web.client.get("/api/v1/session")).json()["role"] == "admin"
    web.client.cookies.clear()
    again = await web.client.get(f"/login?code={code}")
    assert (again.status_code, COOKIE in again.cookies) == (403, False)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_login_link_is_short_lived(web: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.web.credentials.LINK_LASTS", timedelta(seconds=-1))
    assert (await web.client.get(f"/login?code={web.server.credentials.new_code()}")).status_code == 403


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_failed_logins_are_limited_by_address_and_good_ones_wait_too(web: Served) -> None:
    statuses = [(await log_in(web, "wrong")).status_code for _ in range(12)]
    assert statuses == [403] * 10 + [429] * 2
    answer = await log_in(web, "static-admin-token")
    assert (answer.status_code, 0 < int(answer.headers["retry-after"]) <= 60) == (429, True)
    assert (await web.client.get("/login?code=x")).status_code == 429
    # Headers are counted on their own.
    assert (await web.ask("GET", "/api/v1/lanes")).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_failed_credentials_are_limited_but_those_that_were_good_from_there_go_on(web: Served) -> None:
    assert (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).status_code == 200
    headers = {"authorization": "Bearer wrong"}
    statuses = [(await web.client.get("/api/v1/lanes", headers=headers)).status_code for _ in range(62)]
    assert statuses == [401] * 60 + [429] * 2
    # Not only for as long as the last answer is believed.
    web.server.credentials._known.clear()
    assert (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
@pytest.mark.parametrize("secret", ["bearer", "worker"])
async def test_an_address_that_guesses_does_not_learn_which_guess_is_right(web: Served, secret: str) -> None:
    def headers(guess: str) -> dict[str, str]:
        return {"authorization": f"Bearer {guess}"} if secret == "bearer" else {"x-worker-id": "w", "x-internal-secret": guess}

    for number in range(60):
        assert (await web.client.get("/api/pull_job", headers=headers(f"guess-{number}"))).status_code == 401
    right = "static-admin-token" if secret == "bearer" else "shared-worker-secret"
    answers = [await web.client.get("/api/pull_job", headers=headers(guess)) for guess in ("wrong", right)]
    assert [answer.status_code for answer in answers] == [429, 429]
    assert 0 < int(answers[1].headers["retry-after"]) <= 60


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_familiar_credential_that_was_revoked_is_slowed_down_like_any_other(web: Served) -> None:
    assert (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).status_code == 200
    [token] = [one for one in await (await web.app.store()).tokens.list() if one.role is Role.VIEWER]
    await (await web.app.store()).tokens.revoke(token.id)
    web.server.credentials._known.clear()
    statuses = [(await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).status_code for _ in range(62)]
    assert statuses == [401] * 60 + [429] * 2


@pytest.mark.parametrize("next_", ["//evil.example", "https://evil.example", "/\\evil", "javascript:alert(1)", "/a?b", ""])
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_nobody_is_led_to_another_site(web: Served, next_: str) -> None:
    answer = await log_in(web, "static-admin-token", next=next_)
    assert answer.headers["location"] == "/"
    page = await web.client.get("/login", params={"next": next_})
    assert 'value="/"' in page.text


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_form_on_another_site_logs_nobody_in(web: Served) -> None:
    content = urlencode({"token": "static-admin-token"})
    answer = await web.client.post("/login", content=content, headers={**FORM, "origin": "https://evil.example"})
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    answer = await web.client.post("/login", content=content, headers={**FORM, "origin": "http://127.0.0.1"})
    assert answer.status_code == 303


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_workers_and_those_without_a_role_do_not_log_in(web: Served) -> None:
    assert (await log_in(web, web.tokens[Role.WORKER])).status_code == 403
    assert (await log_in(web, signed(sub="ann"))).status_code == 403


async def test_a_session_does_not_outlive_the_web_token_that_opened_it(web: Served) -> None:
    answer = await log_in(web, signed(role="viewer", exp=NOW + 1800))
    [age] = re.findall(r"Max-Age=(\d+)", answer.headers["set-cookie"])
    assert int(age) <= 1800


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_pages_lead_to_the_login_page_and_back(web: Served) -> None:
    answer = await web.client.get("/reference")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/reference")
    answer = await web.client.get("/reference", headers={"cookie": f"{COOKIE}=nonsense"})
    assert answer.status_code == 303
    await log_in(web, "static-admin-token")
    page = await web.client.get("/reference")
    assert (page.status_code, "reference.js" in page.text) == (200, True)
    assert (await web.client.get("/")).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_pages_are_offline_and_under_a_strict_policy(web: Served) -> None:
    await log_in(web, "static-admin-token")
    for path in ("/login", "/reference"):
        page = await web.client.get(path)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert not re.search(r"https?://|<script>|style=|\son\w+=", page.text)
        # Each one more would hold up the first paint.
        assert page.text.count('rel="stylesheet"') == 1
        for asset in re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text):
            assert (await web.client.get(asset)).status_code == 200
    both = (await web.client.get("/assets/windlass.css+jobs.css")).text
    assert both == "".join([(await web.client.get(f"/assets/{one}.css")).text for one in ("windlass", "jobs")])
    no_asset = ("../server.py", "..%2Fserver.py", "nothing.css", "jobs.css+nothing.css", "theme.js+keys.js", "jobs.css+jobs.css")
    for asset in no_asset:
        assert (await web.ask("GET", f"/assets/{asset}")).status_code == 404


async def test_another_static_secret_ends_the_sessions_of_the_old(url: str) -> None:
    async with served(Windlass(url, admin_token="the-first-admin-token")) as web:
        await log_in(web, "the-first-admin-token")
        cookie = web.client.cookies[COOKIE]
    async with served(Windlass(url, admin_token="the-second-admin-token")) as web:
        assert (await web.client.get("/api/v1/session", headers={"cookie": f"{COOKIE}={cookie}"})).status_code == 401


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_https_makes_the_cookie_secure(web: Served) -> None:
    code = web.server.credentials.new_code()
    answer = await web.client.get(f"https://127.0.0.1/login?code={code}")
    assert "Secure" in answer.headers["set-cookie"]
    assert "strict-transport-security" in answer.headers
