"""Credentials in headers, refusals in the audit log, and nothing secret anywhere."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.web.serving import Served
from tests.web.test_web_tokens import signed
from windlass.core.access import NewToken, Role
from windlass.core.audit import AuditFilter
from windlass.web.errors import Refusal

SECRETS = ("static-admin-token", "shared-worker-secret", "j" * 32)


async def lanes(web: Served, **headers: str) -> int:
    return (
        await web.client.get("/api/v1/lanes", headers={key.replace("_", "-"): value for key, value in headers.items()})
    ).status_code


async def test_the_static_admin_token_is_an_admin(web: Served) -> None:
    assert await lanes(web, authorization="Bearer static-admin-token") == 200
    assert await lanes(web, authorization="bearer static-admin-token") == 200
    for wrong in (
        "Bearer static-admin-toke",
        "Bearer static-admin-token2",
        "Basic static-admin-token",
        "static-admin-token",
        "Bearer",
        "Bearer ",
    ):
        assert await lanes(web, authorization=wrong) == 401


async def test_a_bad_bearer_is_not_saved_by_a_good_cookie(web: Served) -> None:
    await web.client.get(f"/login?code={web.server.credentials.new_code()}")
    assert await lanes(web) == 200
    assert await lanes(web, authorization="Bearer nonsense") == 401


async def test_a_pull_worker_is_known_by_the_shared_secret_and_its_name(web: Served) -> None:
    good = {"x_worker_id": "w1", "x_internal_secret": "shared-worker-secret"}
    assert await lanes(web, **good) == 403
    assert await lanes(web, **{**good, "x_internal_secret": "shared-worker-secre"}) == 401
    assert await lanes(web, x_internal_secret="shared-worker-secret") == 401
    assert await lanes(web, **{**good, "x_worker_id": "x" * 201}) == 401
    found = await web.server.credentials.identify({b"x-worker-id": b"w1", b"x-internal-secret": b"shared-worker-secret"}, "a")
    assert (found.name, found.role, found.worker, found.lanes) == ("worker:w1", Role.WORKER, "w1", None)


async def test_a_worker_token_is_limited_to_its_lanes_and_to_its_worker(web: Served) -> None:
    tokens = (await web.app.store()).tokens
    minted = await tokens.mint(NewToken(name="scraper", role=Role.WORKER, lanes=("pull",)))
    headers = {b"authorization": f"Bearer {minted.secret}".encode()}
    found = await web.server.credentials.identify(headers, "a")
    assert (found.role, found.lanes, found.worker) == (Role.WORKER, ("pull",), "scraper")
    for given, worker in ((b"scraper", "scraper"), (b"scraper/7", "scraper/7"), (b"/host:1", "scraper/host:1")):
        found = await web.server.credentials.identify({**headers, b"x-worker-id": given}, "a")
        assert found.worker == worker


async def minted_worker(web: Served, **options: Any) -> dict[str, str]:
    token = await (await web.app.store()).tokens.mint(NewToken(name="scraper", role=Role.WORKER, **options))
    return {"authorization": f"Bearer {token.secret}"}


async def test_a_worker_token_may_not_call_itself_another_worker(web: Served) -> None:
    headers = await minted_worker(web, worker="w1")
    await web.ask("POST", "/api/v1/jobs", json={"task": "leads", "lane": "pull"})
    for name in ("w2", "scraper", "W1", "w1x", "w", "w2/w1"):
        for method, path in (("GET", "/api/pull_job"), ("POST", "/api/report_results"), ("POST", "/api/heartbeat")):
            answer = await web.client.request(method, path, headers={**headers, "x-worker-id": name})
            assert (answer.status_code, "'w1'" in answer.json()["error"], name in answer.json()["error"]) == (403, True, True)
    got = await web.client.get("/api/pull_job", headers={**headers, "x-worker-id": "w1"})
    job = (await web.ask("GET", f"/api/v1/jobs/{got.json()['job']['id']}")).json()
    assert job["worker"] == "w1"


async def test_without_an_attempt_id_the_worker_of_the_token_is_the_fence(web: Served) -> None:
    mine, other = await minted_worker(web, worker="w1"), await minted_worker(web, worker="w2")
    await web.ask("POST", "/api/v1/jobs", json={"task": "leads", "lane": "pull"})
    got = (await web.client.get("/api/pull_job", headers=mine)).json()["job"]
    said = {"job_id": got["id"], "items": [{"phone": "1"}]}
    assert (await web.client.post("/api/report_results", headers=other, json=said)).status_code == 409
    assert (await web.client.post("/api/report_results", headers={**other, "x-worker-id": "w1"}, json=said)).status_code == 403
    assert (await web.client.post("/api/report_results", headers=mine, json=said)).status_code == 200


async def test_a_web_token_of_a_worker_is_bound_too(web: Served) -> None:
    cases: list[tuple[dict[str, Any], str]] = [({"sub": "ann"}, "jwt:ann"), ({"sub": "ann", "worker": "w1"}, "w1")]
    for claims, own in cases:
        headers = {b"authorization": f"Bearer {signed(role='worker', **claims)}".encode()}
        assert (await web.server.credentials.identify({**headers, b"x-worker-id": own.encode()}, "a")).worker == own
        with pytest.raises(Refusal, match="is for worker"):
            await web.server.credentials.identify({**headers, b"x-worker-id": b"w2"}, "a")


async def test_a_revoked_token_is_out_within_a_second(web: Served) -> None:
    assert (await web.ask("GET", "/api/v1/lanes", Role.PRODUCER)).status_code == 200
    [token] = [one for one in await (await web.app.store()).tokens.list() if one.role is Role.PRODUCER]
    await (await web.app.store()).tokens.revoke(token.id)
    give_up = asyncio.get_running_loop().time() + 1.5
    while (await web.ask("GET", "/api/v1/lanes", Role.PRODUCER)).status_code == 200:
        assert asyncio.get_running_loop().time() < give_up
        await asyncio.sleep(0.05)


async def test_a_token_is_seen_at_most_once_a_minute(web: Served) -> None:
    for _ in range(5):
        await web.ask("GET", "/api/v1/lanes", Role.VIEWER)
        web.server.credentials._known.clear()
    await web.server.notes._queue.join()
    seen = {one.role: one.seen_at for one in await (await web.app.store()).tokens.list()}
    assert seen[Role.VIEWER] is not None
    assert seen[Role.ADMIN] is None
    assert len(web.server.notes._seen) == 1


async def refusals(web: Served) -> list[tuple[str, str | None, str | None]]:
    await web.server.notes._queue.join()
    store = await web.app.store()
    return [(line.principal, line.target, line.request_id) for line in await store.audit.list(AuditFilter(action="refuse"))]


async def test_refusals_are_in_the_audit_log_with_their_request(web: Served) -> None:
    await web.client.get("/api/v1/lanes", headers={"x-request-id": "abc-1"})
    await web.ask("GET", "/api/v1/tokens", Role.VIEWER, headers={"x-request-id": "abc-2"})
    await web.ask("GET", "/api/v1/lanes")
    found = await refusals(web)
    assert [(target, request) for _, target, request in found] == [
        ("GET /api/v1/tokens", "abc-2"),
        ("GET /api/v1/lanes", "abc-1"),
    ]
    assert (found[0][0].endswith(":viewer"), found[1][0]) == (True, "anonymous")


async def test_a_flood_of_refusals_leaves_few_lines(web: Served) -> None:
    for _ in range(50):
        await web.client.get("/api/v1/lanes")
    found = await refusals(web)
    assert [principal for principal, _, _ in found] == ["windlass", *["anonymous"] * 10]
    web.server.notes._count()
    await web.server.notes._queue.join()
    lines = await (await web.app.store()).audit.list(AuditFilter(principal="windlass"))
    # Nothing is lost: what has no line of its own is counted.
    assert [(line.details or {})["count"] for line in lines] == [39, 1]


async def test_refusals_from_many_addresses_have_one_bound_an_hour(web: Served) -> None:
    for number in range(2000):
        address = f"10.0.{number >> 8}.{number & 255}"
        web.server.notes.refused("anonymous", "GET /", address, request_id="r", status=401, why="no")
        if number % 100 == 0:
            await web.server.notes._queue.join()
    await web.server.notes._queue.join()
    assert (await (await web.app.store()).audit.count(AuditFilter(action="refuse"))).total <= 601


async def test_what_an_operator_does_is_audited_as_theirs(web: Served) -> None:
    await web.ask("POST", "/api/v1/lanes/slow/pause?force=true", Role.OPERATOR, headers={"x-request-id": "r-1"})
    [line] = await (await web.app.store()).audit.list(AuditFilter(action="pause lane"))
    assert (line.target, line.request_id, line.principal.endswith(":operator")) == ("lane:slow", "r-1", True)


async def test_secrets_are_in_no_answer_and_in_no_log_line(web: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code = web.server.credentials.new_code()
    paths = ("/api/v1/tokens", "/api/v1/audit", "/api/v1/settings", "/openapi.json", "/nothing", "/api/v1/workers")
    bearers = [*web.tokens.values(), "static-admin-token", "almost-static-admin-token", signed(role="admin"), "wdl_wrong"]
    texts = [
        (await web.client.get(path, headers={"authorization": f"Bearer {bearer}"})).text for bearer in bearers for path in paths
    ]
    texts.append((await web.client.get(f"/login?code={code}")).text)
    texts.append((await web.client.get("/reference")).text)
    ours = [record for record in caplog.records if record.name.startswith(("windlass", "uvicorn"))]
    told = "\n".join([*texts, *(str(vars(record)) for record in ours)])
    for secret in (*SECRETS, code, *bearers):
        assert secret not in told


async def test_authorization_sent_twice_is_refused(web: Served) -> None:
    headers = [("authorization", "Bearer nonsense"), ("authorization", "Bearer static-admin-token")]
    assert (await web.client.get("/api/v1/lanes", headers=headers)).status_code == 400
