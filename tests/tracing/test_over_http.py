"""Traces that come and go over HTTP: the header of an enqueue, the field of a pulled job, a remote worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.tracing.recorded import Recorded, traceparent
from tests.tracing.traced_app import app as code
from tests.web.serving import listening
from windlass import JobState, Windlass
from windlass.core.access import NewToken, Role
from windlass.remote import AsyncClient, Client
from windlass.remote_worker.running import working

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = f"{PARENT[:-2]}00"
ADMIN = "static-admin-token"


@dataclass
class House:
    """A server on a socket, and the test's own view of its database."""

    address: str
    app: Windlass
    worker_token: str

    async def post(self, path: str, body: Any, header: str | None = PARENT) -> Any:
        headers = {"authorization": f"Bearer {ADMIN}"} | ({} if header is None else {"traceparent": header})
        async with httpx2.AsyncClient(base_url=self.address, headers=headers) as client:
            answer = await client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def pull(self) -> Any:
        headers = {"authorization": f"Bearer {self.worker_token}"}
        async with httpx2.AsyncClient(base_url=self.address, headers=headers) as client:
            return (await client.get("/api/pull_job")).json()["job"]


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[str]:
    with listening(Windlass(url, admin_token=ADMIN, accept_unknown=True, **settings), has_upkeep=True) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def house(url: str, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """Run a server that traces only where the test asks for it."""
    with serving(url, otel=getattr(request, "param", False)) as address:
        async with Windlass(url) as app:
            token = await (await app.store()).tokens.mint(NewToken(name="puller", role=Role.WORKER, lanes=("pull",)))
            yield House(address, app, token.secret)


async def test_a_server_that_does_not_trace_passes_the_callers_trace_on_to_pull_workers(house: House, recorded: Recorded) -> None:
    made = await house.post("/api/v1/jobs", {"task": "scrape", "lane": "pull"})
    assert made["traceparent"] == PARENT
    pulled = await house.pull()
    assert (pulled["id"], pulled["traceparent"]) == (made["number"], PARENT)
    assert recorded.spans() == []


async def test_a_bulk_passes_the_trace_on_to_each_of_its_jobs(house: House) -> None:
    made = await house.post("/api/v1/jobs/bulk", {"jobs": [{"task": "scrape", "lane": "pull"}] * 2})
    assert [(await house.app.get(job["number"])).traceparent for job in made["jobs"]] == [PARENT, PARENT]


@pytest.mark.parametrize("house", [True], indirect=True)
async def test_a_server_that_traces_adds_its_own_span(house: House, recorded: Recorded) -> None:
    made = await house.post("/api/v1/jobs", {"task": "scrape", "lane": "pull"})
    [sent] = await recorded.ended("send pull", 1)
    assert traceparent(sent.parent) == PARENT
    assert (await house.pull())["traceparent"] == made["traceparent"] == traceparent(sent.context)


@pytest.mark.parametrize(
    "header",
    [
        None,
        UNSAMPLED,
        "",
        "no trace",
        PARENT.upper(),
        f"{PARENT}-x",
        f"ff{PARENT[2:]}",
        f"00-{'0' * 32}{PARENT[35:]}",
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_header_that_names_no_sampled_trace_is_left_out(house: House, header: str | None) -> None:
    made = await house.post("/api/v1/jobs", {"task": "scrape", "lane": "pull"}, header)
    assert made["traceparent"] is None
    assert (await house.pull())["traceparent"] is None


@pytest.mark.parametrize("house", [False, True], indirect=True)
async def test_a_recurring_job_keeps_no_trace(house: House) -> None:
    made = await house.post("/api/v1/jobs", {"task": "scrape", "lane": "pull", "name": "nightly", "every": "1h"})
    assert made["traceparent"] is None


async def test_a_later_version_of_the_standard_is_read_as_this_one(house: House) -> None:
    made = await house.post("/api/v1/jobs", {"task": "scrape", "lane": "pull"}, f"cc{PARENT[2:]}-more")
    assert made["traceparent"] == PARENT


async def test_a_client_sends_the_headers_that_its_function_returns(house: House) -> None:
    async with AsyncClient(house.address, ADMIN, headers=lambda: {"traceparent": PARENT}) as client:
        made = await client.enqueue("scrape", lane="pull")
    assert (await house.app.get(made.number)).traceparent == PARENT
    with Client(house.address, ADMIN, headers=lambda: {"traceparent": PARENT}) as blocking:
        again = await asyncio.to_thread(blocking.enqueue, "scrape", lane="pull")
    assert again.traceparent == PARENT


async def test_the_admin_api_takes_a_trace_too(house: House) -> None:
    made = await house.post("/api/admin/jobs", {"subreddit_id": 7})
    assert (await house.app.get(made["id"])).traceparent == PARENT


async def test_a_remote_workers_runs_are_linked_to_the_enqueue(house: House, recorded: Recorded) -> None:
    made = await house.post("/api/v1/jobs", {"task": "in_loop", "lane": "pull"})
    async with working(code, house.address, house.worker_token, lanes=("pull",)):
        async with asyncio.timeout(20):
            while (await house.app.get(made["number"])).state is not JobState.COMPLETED:  # noqa: ASYNC110 - it says so there
                await asyncio.sleep(0.01)
    [run] = recorded.spans("process in_loop")
    assert [traceparent(link.context) for link in run.links] == [PARENT]
    assert run.context is not None
    result = await house.app.wait(made["number"], timeout=1)
    assert result["logged"]["trace_id"] == f"{run.context.trace_id:032x}"
