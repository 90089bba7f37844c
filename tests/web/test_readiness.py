"""`/readyz` says why a server is not ready, and `/api/v1/doctor` what is wrong."""

from __future__ import annotations

import time

import httpx2
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.raw import execute
from tests.support.silent_proxy import silent_proxy
from tests.support.stores import fresh_postgres
from tests.web.serving import Served, listening, served
from windlass import Windlass
from windlass.core.access import Role

ON_POSTGRES = pytest.mark.parametrize("url", ["postgres"], indirect=True)


async def test_a_ready_server_says_so(web: Served) -> None:
    answer = await web.client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_an_old_schema_is_a_reason(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as url:
        async with served(Windlass(url)) as web:
            await execute(await web.app.store(), "delete from windlass_schema where version = 12")
            await _is_refused(web, "schema_old", "run `windlass migrate`")


async def test_a_new_schema_is_a_reason(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as url:
        async with served(Windlass(url)) as web:
            await execute(await web.app.store(), "insert into windlass_schema values (9999, 'later', 'x', '')")
            await _is_refused(web, "schema_new", "upgrade it")


async def test_a_missing_table_is_a_reason(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as url:
        async with served(Windlass(url)) as web:
            await execute(await web.app.store(), "drop table windlass_schema")
            await _is_refused(web, "schema_wrong", "run `windlass migrate`")


async def _is_refused(web: Served, reason: str, told: str) -> None:
    answer = await web.client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    document = answer.json()
    assert [one["reason"] for one in document["reasons"]] == [reason]
    assert told in document["reasons"][0]["message"]
    assert document["error"].startswith("not ready: ")


@ON_POSTGRES
async def test_a_server_that_stops_says_so(web: Served) -> None:
    web.server.stopping.set()
    await _is_refused(web, "stopping", "stopping")


def test_a_database_that_goes_silent_is_a_reason_within_seconds_and_without_secrets(postgres_server: PostgresServer) -> None:
    with (
        fresh_postgres(postgres_server) as direct,
        silent_proxy(direct) as proxy,
        listening(Windlass(proxy.url)) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):
        assert client.get("/readyz").status_code == 200
        proxy.silence()
        time.sleep(1.1)
        began = time.monotonic()
        answer = client.get("/readyz")
        assert time.monotonic() - began < 8
        assert (answer.status_code, answer.json()["reasons"][0]["reason"]) == (503, "database_silent")
        assert "127.0.0.1" not in answer.text
        proxy.heal()


async def test_the_doctor_answers_operators(web: Served) -> None:
    assert (await web.ask("GET", "/api/v1/doctor", Role.VIEWER)).status_code == 403
    answer = (await web.ask("GET", "/api/v1/doctor", Role.OPERATOR)).json()
    assert answer["verdict"] == "ok"
    assert {"database", "schema", "indexes", "workers"} <= {one["check"] for one in answer["checks"]}
    await web.app.chores.pause("prune")
    answer = (await web.ask("GET", "/api/v1/doctor", Role.OPERATOR)).json()
    [chores] = [one for one in answer["checks"] if one["check"] == "chores"]
    assert (answer["verdict"], chores["remedy"]) == ("warning", "windlass chores resume prune")
