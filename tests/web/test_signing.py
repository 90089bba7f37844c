"""Signed requests: the secret stays at home, two of them while they change, and each request counts once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest

from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from tests.web.test_pull import SQLITE_ONLY, enqueue
from windlass import Windlass
from windlass.config import load
from windlass.core.access import Role
from windlass.errors import ConfigError
from windlass.web.limits import HttpLimits
from windlass.web.signing import Target, sign

NEW, OLD = "the-new-signing-secret", "the-old-signing-secret"


@pytest.fixture
async def signing(url: str) -> AsyncIterator[Served]:
    settings = SETTINGS | {"worker_signing_secret": f"{NEW},{OLD}"}
    async with served(Windlass(url, **settings), HttpLimits(failed_credentials=1000)) as made:
        yield made


def signed(method: str, path: str, body: bytes = b"", secret: str = NEW, **changed: str) -> dict[str, str]:
    """Make the headers of a signed request, with some of them other than they should be."""
    headers = {
        "X-Worker-Id": "w1",
        "X-Timestamp": str(int(time.time())),
        "X-Nonce": hashlib.sha256(f"{time.monotonic_ns()}{path}".encode()).hexdigest(),
    }
    if body:
        headers["X-Content-SHA256"] = hashlib.sha256(body).hexdigest()
        headers["Content-Type"] = "application/json"
    given = {name.replace("_", "-"): value for name, value in changed.items()}
    before = {name: value for name, value in given.items() if name in {"X-Timestamp", "X-Nonce", "X-Worker-Id"}}
    headers |= before
    plain = {name.lower().encode(): value.encode("latin-1") for name, value in headers.items()}
    place, _, query = path.partition("?")
    headers["X-Signature"] = "v1=" + sign(secret, Target(method, place.encode(), query.encode()), plain).hex()
    return headers | given


async def ask(  # noqa: PLR0917 - a request has these parts, in this order
    web: Served, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> httpx2.Response:
    return await web.client.request(method, path, content=body, headers=dict(headers))


async def test_a_signed_worker_pulls_and_reports(signing: Served) -> None:
    number = await enqueue(signing)
    path = "/api/pull_job?lease_sec=60&lane=pull"
    answer = await ask(signing, "GET", path, b"", signed("GET", path))
    job = answer.json()["job"]
    assert (answer.status_code, job["id"]) == (200, number)
    body = json.dumps({"job_id": number, "attempt_id": job["attempt_id"], "done": True}).encode()
    done = await ask(signing, "POST", "/api/report_results", body, signed("POST", "/api/report_results", body, OLD))
    assert (done.status_code, done.json()["done"]) == (200, True)
    run = (await (await signing.app.store()).list_executions(number))[0]
    assert run.worker == "w1"


async def test_a_request_that_was_heard_before_is_refused_by_every_server(signing: Served, url: str) -> None:
    number = await enqueue(signing)
    path = f"/api/job_status?job_id={number}"
    headers = signed("GET", path)
    assert (await ask(signing, "GET", path, b"", headers)).status_code == 200
    upper = headers | {"X-Signature": "v1=" + headers["X-Signature"][3:].upper()}
    settings = SETTINGS | {"worker_signing_secret": NEW}
    async with served(Windlass(url, **settings)) as other:
        for server in (signing, other):
            for again in (headers, upper):
                answer = await ask(server, "GET", path, b"", again)
                assert (answer.status_code, "used before" in answer.json()["error"]) == (401, True)


CHANGES: list[tuple[str, dict[str, str]]] = [
    ("X-Signature", {"X_Signature": "v1=" + "0" * 64}),
    ("X-Signature", {"X_Signature": "v2=" + "0" * 64}),
    ("X-Signature", {"X_Signature": "nonsense"}),
    ("X-Signature", {"secret": "some-other-secret-here"}),
    ("X-Timestamp", {"X_Timestamp": "soon"}),
    ("X-Timestamp", {"X_Timestamp": "-1"}),
    ("X-Timestamp", {"X_Timestamp": "9" * 40}),
    ("X-Nonce", {"X_Nonce": "short"}),
    ("X-Nonce", {"X_Nonce": "new line is no nonce"}),
    ("X-Worker-Id", {"X_Worker_Id": ""}),
    ("X-Worker-Id", {"X_Worker_Id": "w" * 300}),
    ("X-Content-SHA256", {"X_Content_SHA256": "abc"}),
    ("X-Signature", {"X_Content_SHA256": "0" * 64}),
]


@SQLITE_ONLY
async def test_whatever_does_not_fit_is_refused_and_names_its_header(signing: Served) -> None:
    number = await enqueue(signing)
    body = json.dumps({"job_id": number, "items": [{"phone": "1"}]}).encode()
    for header, change in CHANGES:
        answer = await ask(signing, "POST", "/api/report_results", body, signed("POST", "/api/report_results", body, **change))
        assert (answer.status_code, header in answer.json()["error"]) == (401, True), (change, answer.text)
    assert (await (await signing.app.store()).get(number)).progress_count == 0


@SQLITE_ONLY
@pytest.mark.parametrize(("shift", "status"), [(-310, 401), (-290, 200), (290, 200), (310, 401)])
async def test_the_time_may_be_five_minutes_off(signing: Served, shift: int, status: int) -> None:
    await enqueue(signing)
    at = str(int(time.time()) + shift)
    headers = signed("GET", "/api/pull_job", X_Timestamp=at)
    assert (await ask(signing, "GET", "/api/pull_job", b"", headers)).status_code == status


@SQLITE_ONLY
async def test_a_signature_is_for_one_method_path_query_name_and_body(signing: Served) -> None:
    number = await enqueue(signing)
    body = json.dumps({"job_id": number}).encode()
    for method, path, sent, changed in (
        ("GET", "/api/pull_job?lane=other", b"", {}),
        ("GET", "/api/pull_job.php", b"", {}),
        ("HEAD", "/api/pull_job", b"", {}),
        ("GET", "/api/pull_job", b"", {"X-Worker-Id": "w2"}),
        ("GET", "/api/pull_job", b"", {"X-Nonce": "another-nonce"}),
    ):
        answer = await ask(signing, method, path, sent, signed("GET", "/api/pull_job") | changed)
        assert answer.status_code == 401, (method, path)
    headers = signed("POST", "/api/report_results", body)
    other = json.dumps({"job_id": number, "done": True}).encode()
    for sent in (other, b""):
        answer = await ask(signing, "POST", "/api/report_results", sent, signed("POST", "/api/report_results", body))
        assert (answer.status_code, "X-Content-SHA256" in answer.json()["error"]) == (401, True)
    without = {name: value for name, value in headers.items() if name != "X-Content-SHA256"}
    assert (await ask(signing, "POST", "/api/report_results", body, without)).status_code == 401


@SQLITE_ONLY
async def test_a_server_that_asks_for_signatures_does_not_take_the_bare_secret(signing: Served) -> None:
    headers = {"x-worker-id": "w1", "x-internal-secret": "shared-worker-secret"}
    answer = await ask(signing, "GET", "/api/pull_job", b"", headers)
    assert (answer.status_code, "signatures" in answer.json()["error"]) == (401, True)
    assert (await signing.ask("GET", "/api/pull_job", Role.WORKER)).status_code == 200


@SQLITE_ONLY
async def test_a_signature_opens_only_what_is_for_workers(signing: Served) -> None:
    assert (await ask(signing, "GET", "/api/v1/jobs", b"", signed("GET", "/api/v1/jobs"))).status_code == 403


@SQLITE_ONLY
async def test_without_a_secret_nothing_is_taken_as_signed(web: Served) -> None:
    assert (await ask(web, "GET", "/api/pull_job", b"", signed("GET", "/api/pull_job"))).status_code == 401


@SQLITE_ONLY
async def test_guessing_signatures_is_slowed_down(url: str) -> None:
    settings = SETTINGS | {"worker_signing_secret": NEW}
    async with served(Windlass(url, **settings), HttpLimits(failed_credentials=3)) as web:
        bad = [await ask(web, "GET", "/api/pull_job", b"", signed("GET", "/api/pull_job", secret=OLD)) for _ in range(4)]
    assert [answer.status_code for answer in bad] == [401, 401, 401, 429]


@pytest.mark.parametrize("value", ["", "short", f"{NEW},{OLD},third-signing-secret", f"{NEW},", f"{NEW},short"])
def test_a_signing_secret_that_cannot_be_used_is_an_error_that_does_not_show_it(value: str) -> None:
    with pytest.raises(ConfigError, match="WINDLASS_WORKER_SIGNING_SECRET") as caught:
        load(environ={"WINDLASS_WORKER_SIGNING_SECRET": value})
    assert not value or value not in str(caught.value)


def test_one_or_two_signing_secrets_are_read() -> None:
    def read(value: Any) -> Any:
        return load(environ={"WINDLASS_WORKER_SIGNING_SECRET": value}).worker_signing_secret

    assert read(f" {NEW} , {OLD} ") == (NEW, OLD)
    assert read(NEW) == (NEW,)
    assert NEW not in repr(load({"worker_signing_secret": [NEW]}, environ={}))
