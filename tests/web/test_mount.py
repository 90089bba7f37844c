"""The server below a path: of an application that mounts it, or of a proxy."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from urllib.parse import urlencode

import httpx2
import pytest

from tests.web.conftest import SETTINGS
from tests.web.mounted import PREFIX, mounted
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.web.mount import mounted_path, put_below
from windlass.web.routes import ROUTES

FORM = {"content-type": "application/x-www-form-urlencoded"}
PAGES = tuple(route.path for route in ROUTES if route.is_page and route.method == "GET" and "{" not in route.path)


@pytest.mark.parametrize(
    ("raw_path", "root_path", "public_base", "expected"),
    [
        (b"/jobs", "", "", ("", b"/jobs")),
        (b"/a/jobs", "/a", "", ("/a", b"/jobs")),
        (b"/a", "/a", "", ("/a", b"/")),
        (b"/a/", "/a/", "", ("/a", b"/")),
        (b"/jobs", "/a", "", ("/a", b"/jobs")),
        (b"/ab/jobs", "/a", "", ("/a", b"/ab/jobs")),
        (b"/jobs", "", "/p/q", ("/p/q", b"/jobs")),
        (b"/p/q/jobs", "", "/p/q", ("/p/q", b"/jobs")),
        (b"/a%20b/jobs", "/a b", "", ("/a%20b", b"/jobs")),
    ],
)
def test_what_stands_before_a_path_is_taken_off(
    raw_path: bytes, root_path: str, public_base: str, expected: tuple[str, bytes]
) -> None:
    assert mounted_path(raw_path, root_path, public_base) == expected


def test_only_addresses_of_ours_are_put_below() -> None:
    page = '<a href="/jobs" title="/etc"> href=&#34;/x <a href="//other"> <button data-url="/api/v1/bulk" value="/y">'
    assert put_below("/q", page) == (
        '<a href="/q/jobs" title="/etc"> href=&#34;/x <a href="//other"> <button data-url="/q/api/v1/bulk" value="/y">'
    )


def addresses(page: str) -> set[str]:
    return {
        unescape(path) for path in re.findall(r' (?:href|src|action|data-href|data-url|data-undo|data-next)="(/[^"]*)"', page)
    }


def test_an_application_shows_the_dashboard_below_a_path(url: str) -> None:
    app = Windlass(url, **SETTINGS)
    app.task(name="greet")(lambda: None)
    with mounted(app) as address, httpx2.Client(timeout=60) as client:
        refused = client.get(f"{address}/jobs", headers={"accept": "text/html"})
        assert (refused.status_code, refused.headers["location"]) == (303, f"{PREFIX}/login?next={PREFIX}/jobs")
        form = urlencode({"token": SETTINGS["admin_token"], "next": f"{PREFIX}/jobs"})
        answer = client.post(f"{address}/login", content=form, headers=FORM)
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}/jobs")
        assert f"Path={PREFIX}/;" in answer.headers["set-cookie"]
        csrf = client.get(f"{address}/api/v1/session").json()["csrf"]
        made = client.post(f"{address}/api/v1/jobs", json={"task": "greet"}, headers={"x-csrf-token": csrf})
        assert made.headers["location"] == f"{PREFIX}/api/v1/jobs/{made.json()['id']}"
        found: set[str] = set()
        for path in (*PAGES, f"/jobs/{made.json()['id']}", "/tasks/greet", f"/correlations/{made.json()['id']}"):
            shown = client.get(f"{address}{path}")
            # Lists of packs are there only where a process has the pack.
            assert shown.status_code == (404 if path in {"/pages", "/feeds"} else 200), path
            found |= addresses(shown.text)
        assert found
        assert {path for path in found if not path.startswith(f"{PREFIX}/")} == set()
        # Every link that can be followed leads somewhere.
        links = {path.partition("#")[0] for path in found if "/api/" not in path and not path.endswith(("/logout", "{number}"))}
        origin = address.removesuffix(PREFIX)
        assert {path for path in links if client.get(f"{origin}{path}").status_code != 200} == set()
        assert client.get(f"{address}/openapi.json").json()["servers"] == [{"url": PREFIX}]
        missing = client.get(f"{address}/nothing", headers={"accept": "text/html"})
        assert (missing.status_code, f'href="{PREFIX}/jobs"' in missing.text) == (404, True)
        csrf_form = urlencode({"csrf": csrf})
        left = client.post(f"{address}/logout", content=csrf_form, headers=FORM)
        assert (left.status_code, left.headers["location"]) == (303, f"{PREFIX}/login")
        assert client.get(f"{address}/api/v1/session").status_code == 401


def test_what_is_on_other_paths_of_the_application_is_none_of_ours(url: str) -> None:
    with mounted(Windlass(url, **SETTINGS)) as address, httpx2.Client(timeout=60) as client:
        assert client.get(f"{address.removesuffix(PREFIX)}/jobs").status_code == 404
        assert client.get(f"{address}queue/jobs").status_code == 404


@pytest.fixture
async def proxied(url: str) -> AsyncIterator[Served]:
    async with served(Windlass(url, **SETTINGS, public_url="https://ops.example.org/queue/")) as made:
        yield made


@pytest.mark.parametrize("asked", ["/jobs", "/queue/jobs"], ids=["a proxy that takes its part off", "one that does not"])
async def test_links_lead_to_the_public_address_behind_a_proxy(proxied: Served, asked: str) -> None:
    answer = await proxied.client.get(asked, headers={"accept": "text/html", "host": "ops.example.org"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue/login?next=/queue/jobs")
    shown = await proxied.ask("GET", asked)
    assert shown.status_code == 200
    assert {path for path in addresses(shown.text) if not path.startswith("/queue/")} == set()
    start = await proxied.ask("GET", "/")
    assert "https://ops.example.org/queue/api/v1/jobs" in start.text
