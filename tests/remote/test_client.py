"""The HTTP client end to end: what the server says arrives as records and as our own errors."""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import httpx2
import pytest
from pydantic import TypeAdapter

from tests.remote.conftest import TOKEN
from windlass import Windlass
from windlass.core.finding import Severity
from windlass.core.job import JobState, NewJob
from windlass.core.known_task import DeclaredTask
from windlass.core.topic import Topic
from windlass.core.worker import NewWorker
from windlass.errors import (
    CanaryEnded,
    CanaryNotFound,
    CanaryRunning,
    ConfigError,
    InvalidInput,
    LetterGroupNotFound,
    LetterNotFound,
    LetterSettled,
    NotFound,
    RemoteError,
    ServerUnavailable,
    Unauthorized,
    WaitTimeout,
    WindlassError,
)
from windlass.http_client.courier import Courier
from windlass.http_client.nouns import list_lanes
from windlass.http_client.records import RemoteJob
from windlass.http_client.waiting import Waiting
from windlass.remote import AsyncClient, Client
from windlass.store import Store


async def dead_letter(store: Store, task: str, error: str = "mailbox full") -> int:
    [made] = await store.enqueue([NewJob(task=task, correlation_id=f"of {task}")])
    await store.bury([made.id], error)
    [letter] = await store.list_dead_letters(made.id)
    return letter.id


async def test_dead_letters_are_read_acknowledged_and_requeued(client: Client, store: Store) -> None:
    ids = [await dead_letter(store, "email") for _ in range(3)]
    assert [one.id for one in client.letters.list(task="email")] == ids[::-1]
    page = client.letters.page(task="email", limit=2)
    assert (len(page.dead_letters), page.total, page.next is not None) == (2, 3, True)
    letter = client.letters.get(ids[0])
    assert (letter.task, letter.error_message, letter.original_job is not None) == ("email", "mailbox full", True)
    seen = client.letters.acknowledge(ids[0], "known")
    assert (seen.acknowledged, seen.acknowledged_by, seen.note) == (True, "admin", "known")
    with pytest.raises(LetterSettled, match="acknowledged it before") as settled:
        client.letters.acknowledge(ids[0])
    assert (settled.value.letter_id, settled.value.move, settled.value.request_id is not None) == (ids[0], "acknowledge", True)
    assert client.letters.requeue(ids[0]).requeued_id == letter.job_id
    assert client.letters.requeue_many(ids=ids, dry_run=True).matched == 3
    done = client.letters.requeue_many(task="email")
    assert (done.changed, client.letters.acknowledge_many(task="email").matched) == (2, 0)
    assert client.letters.groups(is_open=True) == []
    with pytest.raises(LetterNotFound) as missing:
        client.letters.get(10**9)
    assert missing.value.letter_id == 10**9


async def test_the_desk_of_dead_letters_from_afar(client: Client, aclient: AsyncClient, store: Store) -> None:
    ids = [await dead_letter(store, "fax") for _ in range(6)]
    edited = client.letters.edit(ids[0], {"to": "bob"})
    assert (edited.edited_payload, edited.edited_by) == ({"to": "bob"}, "admin")
    assert [one.text for one in (await aclient.letters.add_note(ids[0], "seen")).notes] == ["seen"]
    [group] = [one for one in client.letters.groups(is_open=True) if one.task == "fax"]
    assert (group.letters, group.in_hour, group.is_new, client.letters.counts().hour >= 6) == (6, 6, False, True)
    assert [one for one in await aclient.letters.groups(is_new=True) if one.task == "fax"] == []
    canary = client.canaries.start(size=2, fingerprint=group.fingerprint)
    assert (canary.state, len(canary.jobs), canary.created_by) == ("trying", 2, "admin")
    with pytest.raises(CanaryRunning) as running:
        await aclient.canaries.start(size=2, fingerprint=group.fingerprint)
    assert running.value.canary_id == canary.id
    assert [one.id for one in client.canaries.list(is_active=True)] == [canary.id]
    assert (await aclient.canaries.cancel(canary.id)).state == "cancelled"
    with pytest.raises(CanaryEnded, match="it is cancelled"):
        client.canaries.cancel(canary.id)
    assert client.canaries.get(canary.id).ended_at is not None
    with pytest.raises(CanaryNotFound):
        client.canaries.get(10**9)
    assert client.letters.requeue_group(group.fingerprint, dry_run=True).matched == 4
    assert (await aclient.letters.requeue_group(group.fingerprint)).changed == 4
    with pytest.raises(LetterGroupNotFound):
        client.letters.requeue_group("nope")
    [first, *_] = client.correlation("of fax")
    assert (first.wait_ms, first.run_ms, first.runs, first.executions) == (None, 0, (), 0)


async def test_the_same_for_asyncio(aclient: AsyncClient, store: Store) -> None:
    ids = [await dead_letter(store, "sms", f"no credit {place}") for place in range(3)]
    assert [one.id async for one in aclient.letters.list(task="sms")] == ids[::-1]
    assert (await aclient.letters.requeue(ids[0])).requeued_id is not None
    with pytest.raises(LetterSettled):
        await aclient.letters.requeue(ids[0])
    assert [one.letters for one in await aclient.letters.groups(is_open=True)] == [2]
    traced = await aclient.correlation("of sms")
    assert [(one.task, one.depth) for one in traced] == [("sms", 0)] * 3
    await aclient.breakers.force_open("sms-service")
    assert "sms-service" in [one.name async for one in aclient.breakers.list()]
    counts = (await aclient.counts()).counts
    assert (counts[JobState.PENDING] > 0, counts[JobState.FAILED]) == (True, 2)


def test_alerts_are_silenced_and_heard_again(client: Client) -> None:
    made = client.alerts.silence("depth", "90m", reason="import")
    assert (made.created_by, made.until - made.created_at) == ("admin", timedelta(minutes=90))
    assert [one.rule for one in client.alerts.board().silences] == ["depth"]
    assert client.alerts.unsilence("depth") is True
    with pytest.raises(NotFound, match="is not silenced"):
        client.alerts.unsilence("depth")
    assert (client.alerts.board().silences, client.alerts.history()) == ((), [])


async def test_the_doctor_answers_over_http(client: Client, aclient: AsyncClient) -> None:
    found = client.doctor()
    assert {"database", "schema", "workers"} <= {one.check for one in found.findings}
    assert {one.check: one.verdict for one in found.findings}["database"] is Severity.OK
    assert [one.check for one in (await aclient.doctor()).findings] == [one.check for one in found.findings]


def test_breakers_are_forced_and_reset(client: Client) -> None:
    forced = client.breakers.force_open("email-service", "90s")
    assert forced.probe_at is not None
    assert forced.opened_at is not None
    assert (forced.state, forced.probe_at - forced.opened_at) == ("open", timedelta(seconds=90))
    assert client.breakers.reset("email-service").state == "closed"
    assert [one.reason for one in client.breakers.history("email-service")] == ["reset", "forced"]
    assert "email-service" in [one.name for one in client.breakers.list()]
    with pytest.raises(NotFound, match="'none' not found") as missing:
        client.breakers.get("none")
    assert missing.value.status == 404
    with pytest.raises(InvalidInput, match=r"^for: "):
        client.breakers.force_open("email-service", "soon")


async def test_lanes_tasks_and_workers(client: Client, store: Store) -> None:
    name = "lane/with a slash?"
    with pytest.raises(NotFound, match="did you mean"):
        client.lanes.pause("defaul")
    paused = client.lanes.pause(name, force=True)
    assert (paused.name, paused.is_paused, paused.is_changed) == (name, True, True)
    assert [one.is_paused for one in client.lanes.list() if one.name == name] == [True]
    assert client.lanes.drain(name).is_done
    assert not client.lanes.resume(name).is_paused
    await store.tasks.declare([DeclaredTask(name=f"task-{place}") for place in range(3)])
    assert [one.name for one in client.tasks.list()] == ["task-0", "task-1", "task-2"]
    assert client.tasks.pause("task-1").is_paused
    await store.enqueue([NewJob(task="task-1", lane="own")])
    assert (client.tasks.get("task-1").is_paused, client.tasks.get("task-1").counts) == (True, {JobState.PENDING: 1})
    assert client.lanes.get("own").counts == {JobState.PENDING: 1}
    for missing in (client.tasks.get, client.lanes.get):
        with pytest.raises(NotFound, match="'none' not found"):
            missing("none")
    await store.workers.register(NewWorker(id="one", host="here", pid=7, version="1", pools='{"*": 5}'))
    assert [(one.id, one.is_online) for one in client.workers()] == [("one", True)]
    assert client.pause_worker("one").paused_by == "admin"
    assert [one.paused_by for one in client.workers()] == ["admin"]
    assert client.resume_worker("one").paused_at is None
    with pytest.raises(NotFound, match="worker 'nobody' not found"):
        client.pause_worker("nobody")


async def test_events_are_read_as_they_come(client: Client, aclient: AsyncClient, store: Store) -> None:
    first = next(client.events())
    assert set(first.topics) == set(Topic)
    before = first.counts[JobState.PENDING]
    enqueued = False
    async for change in aclient.events():
        if not enqueued:
            await store.enqueue([NewJob(task="t")])
            enqueued = True
        if change.counts[JobState.PENDING] == before + 1:
            break


def test_a_bad_token_is_told_apart_from_no_token(address: str) -> None:
    with Client(address, "wrong") as client, pytest.raises(Unauthorized, match="not valid") as refused:
        client.lanes.list()
    assert (refused.value.status, refused.value.request_id is not None) == (401, True)
    with Client(address) as client, pytest.raises(Unauthorized, match="credentials are needed"):
        next(client.events())


def test_address_and_token_come_from_the_environment(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", f"http://127.0.0.1:9, {address}/")
    monkeypatch.setenv("WINDLASS_TOKEN", TOKEN)
    with Client() as client:
        assert client.lanes.list() is not None
    # An application in the same program takes them for nobody's slip.
    assert Windlass("sqlite://").settings.admin_token is None


@pytest.mark.parametrize("url", ["", "localhost:8060", "ftp://x", []])
def test_an_address_that_cannot_be_one_is_named(url: Any) -> None:
    with pytest.raises(ConfigError, match="url"):
        Client(url)


def test_both_clients_have_the_same_verbs() -> None:
    with Client("http://a", "t") as ours:
        theirs = AsyncClient("http://a", "t")
        renamed = {"close": "aclose"}
        for noun in ("", "letters", "canaries", "breakers", "lanes", "tasks", "insights", "alerts", "items"):
            here, there = (getattr(one, noun) if noun else one for one in (ours, theirs))
            verbs = {one for one in dir(here) if one[0] != "_"}
            assert {renamed.get(one, one) for one in verbs} == {one for one in dir(there) if one[0] != "_"}
            for verb in sorted(one for one in verbs if inspect.ismethod(getattr(here, one)) and one not in renamed):
                blocking, awaited = getattr(here, verb), getattr(there, verb)
                assert _parameters(blocking.__func__) == _parameters(awaited.__func__), verb
                assert (inspect.iscoroutinefunction(blocking), inspect.isasyncgenfunction(blocking)) == (False, False), verb
                assert inspect.iscoroutinefunction(awaited) or inspect.isasyncgenfunction(awaited), verb


@pytest.mark.parametrize("verb", ["get", "enqueue", "wait", "list", "events"])
def test_a_class_shows_its_verbs_as_functions(verb: str) -> None:
    blocking, awaited = getattr(Client, verb), getattr(AsyncClient, verb)
    assert blocking.__doc__ == awaited.__doc__ is not None
    assert not inspect.iscoroutinefunction(blocking)
    assert inspect.iscoroutinefunction(awaited) or inspect.isasyncgenfunction(awaited)
    assert list(inspect.signature(blocking).parameters) == list(inspect.signature(awaited).parameters)


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(one.name, one.default, one.kind) for one in inspect.signature(function).parameters.values()]


class Flaky(BaseHTTPRequestHandler):
    """Hangs up on the first requests of a path, then answers."""

    calls: dict[str, int]
    hang_ups = 2
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.calls[self.path] = self.calls.get(self.path, 0) + 1
        if self.calls[self.path] <= self.hang_ups:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        body = b'{"lanes": [], "total": 0}' if self.command == "GET" else b'{"error": "the 3rd call"}'
        self.send_response(200 if self.command == "GET" else 409)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - the library's names

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def flaky() -> Iterator[tuple[str, dict[str, int]]]:
    calls: dict[str, int] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Flaky,), {"calls": calls}))
    # What the handlers of closed connections complain about is not this test's business.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", calls
    server.shutdown()
    thread.join()
    server.server_close()


async def test_only_what_does_no_harm_twice_is_sent_twice(flaky: tuple[str, dict[str, int]]) -> None:
    url, calls = flaky
    with Client(url, "t") as client:
        assert client.lanes.list() == []
        assert calls.pop("/api/v1/lanes") == 3
        with pytest.raises(ServerUnavailable, match="no answer"):
            client.enqueue("t")
        assert calls.pop("/api/v1/jobs") == 1
        with pytest.raises(ServerUnavailable):
            client.enqueue("t", unique_key="k", on_conflict="reject")
        assert calls.pop("/api/v1/jobs") == 1
        with pytest.raises(WindlassError, match="the 3rd call"):
            client.enqueue("t", unique_key="k")
        assert calls.pop("/api/v1/jobs") == 3
        with pytest.raises(ServerUnavailable):
            client.enqueue_many([{"task": "t", "unique_key": "k"}, {"task": "t"}])
        assert calls.pop("/api/v1/jobs/bulk") == 1
    async with AsyncClient(url, "t", retries=1) as aclient:
        with pytest.raises(ServerUnavailable):
            await aclient.enqueue("t", unique_key="k")
        assert calls.pop("/api/v1/jobs") == 2


def test_a_server_of_another_kind_is_told_apart() -> None:
    for body in (b"<html>", b"[]", b'{"lanes": [{"name": 5}]}', b'{"rows": []}'):
        transport = httpx2.MockTransport(lambda _, body=body: httpx2.Response(200, content=body))
        with Client("http://a", "t", transport=transport) as client, pytest.raises(RemoteError, match="Windlass server"):
            client.lanes.list()


async def test_a_server_that_is_not_there_is_tried_again_and_then_given_up() -> None:
    with Client("http://127.0.0.1:9", "t", retries=1) as client, pytest.raises(ServerUnavailable, match="POST /api/v1/jobs"):
        client.enqueue("t")
    async with AsyncClient("http://127.0.0.1:9", "t", retries=0) as aclient:
        with pytest.raises(ServerUnavailable):
            async for _ in aclient.events():
                pass


def test_pauses_between_tries_grow_and_stay_bounded() -> None:
    courier = Courier("http://a", "t", timeout=1, retries=100, rng=Random(1))
    pauses = [courier.pause_s(list_lanes(), httpx2.ConnectError("no"), tries) for tries in range(1, 101)]
    assert 0.05 <= pauses[0] <= 0.1
    assert max(pauses) <= 2.0


def test_an_option_that_no_job_has_and_a_payload_that_is_no_json_are_refused_here(client: Client) -> None:
    with pytest.raises(InvalidInput, match="prioritty"):
        client.enqueue("t", prioritty=1)  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(InvalidInput, match="JSON"):
        client.enqueue("t", {"at": object()})


def test_a_wait_ends_with_its_time() -> None:
    waiting = Waiting(0)
    job = a_job("pending")
    assert not waiting.is_over(job)
    with pytest.raises(WaitTimeout) as late:
        waiting.pause_s(job)
    assert (late.value.job_id, late.value.state) == (7, "pending")
    with pytest.raises(InvalidInput, match="recurring"):
        waiting.is_over(a_job("scheduled", cadence="@daily"))


def a_job(state: str, **fields: Any) -> RemoteJob:
    now = "2026-01-01T00:00:00Z"
    told = {"id": "b17d0000-0000-8002-8000-000000000007", "number": 7, "task": "t", "payload": {}, "lane": "default"}
    rest = {
        "priority": 0,
        "base_priority": 0,
        "run_at": now,
        "attempts": 0,
        "enabled": True,
        "created_at": now,
        "updated_at": now,
        "correlation_id": "c",
        "metadata": {},
        "retry_backoff_seconds": 1,
    }
    rest |= dict.fromkeys(("is_paused", "schedule_enabled", "fixed_rate"), False)
    counts = ("max_retries", "current_retry_count", "max_attempts", "progress_count", "result_count", "executions")
    rest |= dict.fromkeys((*counts, "consecutive_failures"), 0)
    return TypeAdapter(RemoteJob).validate_python({**told, **rest, "state": state, "status": state, **fields, "new_field": 1})
