"""Every route with every role: the table of routes is the only thing that decides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.web.route import Route
from windlass.web.routes import ROUTES

MAY = {
    Role.VIEWER: {Role.VIEWER},
    Role.PRODUCER: {Role.VIEWER, Role.PRODUCER},
    Role.OPERATOR: {Role.VIEWER, Role.PRODUCER, Role.OPERATOR},
    Role.ADMIN: {Role.VIEWER, Role.PRODUCER, Role.OPERATOR, Role.ADMIN},
    Role.WORKER: {Role.WORKER},
}


# Nobody's: revoking the token of a role on the way would shut it out of all that follows.
STRANGER = "987654321"


def path_of(route: Route) -> str:
    return "/".join(STRANGER if segment.startswith("{") else segment for segment in route.path.split("/"))


def cases() -> Iterator[tuple[Route, Role | None]]:
    for route in ROUTES:
        for role in (None, *Role):
            yield route, role


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_every_route_asks_for_its_role_and_for_nothing_else(web: Served) -> None:
    wrong: list[str] = []
    seen = 0
    for route, role in cases():
        answer = await web.ask(route.method, path_of(route), role)
        seen += 1
        if verdict(route, role, answer.status_code) is False:
            wrong.append(f"{route.method} {route.path} as {role}: {answer.status_code} {answer.text[:80]}")
    assert wrong == []
    assert seen == len(ROUTES) * 6


def verdict(route: Route, role: Role | None, status: int) -> bool:
    if route.least is None:
        return status not in {401, 500}
    if role is None:
        return status == (303 if route.is_page else 401)
    if route.least not in MAY[role]:
        return status == 403
    return status not in {401, 403, 500}


def test_a_role_includes_exactly_those_below_it() -> None:
    assert {role: {least for least in Role if role.includes(least)} for role in Role} == MAY


def test_only_probes_login_assets_and_callbacks_are_public() -> None:
    public = {(route.method, route.path) for route in ROUTES if route.least is None}
    assert public == {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/login"),
        ("POST", "/login"),
        ("GET", "/assets/{name}"),
        ("GET", "/websub/{feed}"),
        ("POST", "/websub/{feed}"),
    }


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_what_is_not_in_the_table_does_not_exist(web: Served) -> None:
    for path in (
        "/nothing",
        "/api/v1",
        "/api/v1/",
        "/docs",
        "/redoc",
        "/api/v1/lanes/",
        "/api/v1/lanes/a/b/pause",
        "/x//",
        "/api//v1/lanes",
    ):
        assert (await web.ask("GET", path, None)).status_code == 401, path
        assert (await web.ask("GET", path)).status_code == 404, path


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_wrong_method_is_told_which_there_are(web: Served) -> None:
    assert (await web.ask("PATCH", "/api/v1/lanes", None)).status_code == 401
    answer = await web.ask("PATCH", "/api/v1/lanes")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert (await web.ask("TRACE", "/api/v1/tokens")).headers["allow"] == "GET, HEAD, POST"
    assert (await web.ask("POST", "/healthz", None)).status_code == 405
    assert (await web.ask("OPTIONS", "/api/v1/lanes")).status_code == 405


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_principal_without_a_role_may_do_nothing(web: Served) -> None:
    from tests.web.test_web_tokens import signed  # noqa: PLC0415 - the other suite's helper

    answer = await web.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {signed(sub='ann')}"})
    assert (answer.status_code, "jwt:ann" in answer.json()["error"]) == (403, True)
