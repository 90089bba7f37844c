"""Dead letters over HTTP: edited, noted, counted, requeued by kind and with a canary first."""

from __future__ import annotations

import pytest

from tests.store.builders import claim_one, end, failure
from tests.web.serving import Served
from tests.web.test_operations import dead_letter
from windlass.core.access import Role
from windlass.core.job import NewJob
from windlass.core.letters import MAX_NOTE
from windlass.core.payload import MAX_BYTES, encode_object
from windlass.core.worker import NewWorker
from windlass.testing import FakeClock

on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
LETTERS = "/api/v1/dead-letters"


async def test_a_payload_is_edited_and_the_job_comes_back_with_it(web: Served) -> None:
    job, letter = await dead_letter(web, payload=encode_object({"to": "ann"}))
    done = await web.ask("PUT", f"{LETTERS}/{letter}/payload", Role.OPERATOR, json={"payload": {"to": "bob", "token": "s3cret"}})
    edited = done.json()
    assert (edited["original_job"]["payload"], edited["edited_payload"]) == ({"to": "ann"}, {"to": "bob", "token": "s3cret"})
    assert edited["edited_by"].endswith(":operator")
    hidden = (await web.ask("GET", f"{LETTERS}/{letter}", Role.VIEWER)).json()
    assert hidden["edited_payload"] == {"to": "bob", "token": "[redacted]"}
    await web.ask("POST", f"{LETTERS}/{letter}/requeue", Role.OPERATOR)
    assert (await web.ask("GET", f"/api/v1/jobs/{job}", Role.ADMIN)).json()["payload"]["to"] == "bob"
    again = await web.ask("PUT", f"{LETTERS}/{letter}/payload", Role.OPERATOR, json={"payload": {}})
    assert (again.status_code, again.json()["error"]) == (
        409,
        f"cannot edit dead letter {letter}: it was requeued before",
    )
    lines = (await web.ask("GET", "/api/v1/audit", Role.ADMIN)).json()["audit"]
    assert ("edit", f"letter:{letter}") in {(one["action"], one["target"]) for one in lines}


@on_one
async def test_a_payload_that_its_task_would_not_take_is_refused_like_at_an_enqueue(web: Served) -> None:
    def charge(order: int) -> None: ...

    web.app.task(charge)
    _, letter = await dead_letter(web, "charge", payload=encode_object({"order": 7}))
    path = f"{LETTERS}/{letter}/payload"
    for body, field in (
        ({"payload": {"order": "seven"}}, "order"),
        ({"payload": {"ordre": 7}}, "order"),
        ({"payload": [7]}, "payload"),
        ({"payload": {"order": 7, "x": "x" * MAX_BYTES}}, "payload"),
        ({}, "payload"),
    ):
        answer = await web.ask("PUT", path, Role.OPERATOR, json=body)
        assert (answer.status_code, field in answer.json()["error"]) == (400, True), answer.json()
    assert (await web.ask("PUT", path, Role.OPERATOR, json={"payload": {"order": 8}})).status_code == 200
    assert (await web.ask("PUT", f"{LETTERS}/99/payload", Role.OPERATOR, json={"payload": {}})).status_code == 404
    assert (await web.ask("PUT", path, Role.VIEWER, json={"payload": {}})).status_code == 403


async def test_notes_say_who_and_when(web: Served) -> None:
    _, letter = await dead_letter(web)
    path = f"{LETTERS}/{letter}/notes"
    await web.ask("POST", path, Role.OPERATOR, json={"text": "the mail server was moved"})
    noted = (await web.ask("POST", path, Role.ADMIN, json={"text": "<b>ticket 7</b>"})).json()
    assert [one["text"] for one in noted["notes"]] == ["the mail server was moved", "<b>ticket 7</b>"]
    assert noted["notes"][0]["by"].endswith(":operator")
    assert (await web.ask("GET", f"{LETTERS}/{letter}", Role.VIEWER)).json()["notes"] == noted["notes"]
    for text in ("", "x" * (MAX_NOTE + 1)):
        answer = await web.ask("POST", path, Role.OPERATOR, json={"text": text})
        assert (answer.status_code, "text" in answer.json()["error"]) == (400, True)


async def test_groups_have_counts_and_the_new_ones_are_marked(web: Served) -> None:
    store = await web.app.store()
    await dead_letter(web)
    await store.workers.register(NewWorker(id="w", host="h", pid=1, version="1", app_version="v7"))
    await store.enqueue([NewJob(task="crash", max_attempts=1)])
    held = await claim_one(store, worker="w")
    await end(store, FakeClock(held.claimed_at), held, failure("new in v7"))
    found = (await web.ask("GET", f"{LETTERS}/groups", Role.VIEWER)).json()["groups"]
    marks = [
        (one["error_message"], one["version"], one["is_new"], one["in_hour"], one["in_day"], one["in_week"]) for one in found
    ]
    assert marks == [("new in v7", "v7", True, 1, 1, 1), ("mailbox full", None, False, 1, 1, 1)]
    assert [one["is_new"] for one in (await web.ask("GET", f"{LETTERS}/groups?new=true")).json()["groups"]] == [True]
    counts = (await web.ask("GET", f"{LETTERS}/counts", Role.VIEWER)).json()
    assert counts == {"hour": 2, "day": 2, "week": 2, "open": 2, "is_exact": True}
    [run] = (await web.ask("GET", f"/api/v1/jobs/{held.id}/executions")).json()["executions"]
    assert run["version"] == "v7"


async def test_a_group_is_requeued_by_its_fingerprint(web: Served) -> None:
    _, first = await dead_letter(web)
    await dead_letter(web)
    await dead_letter(web, error="disk full")
    mark = (await web.ask("GET", f"{LETTERS}/{first}")).json()["fingerprint"]
    path = f"{LETTERS}/groups/{mark}/requeue"
    counted = (await web.ask("POST", path, Role.OPERATOR, json={"dry_run": True})).json()
    assert counted == {"matched": 2, "changed": 0, "refused": 0, "missing": 0, "dry_run": True}
    assert (await web.ask("POST", path, Role.OPERATOR)).json()["changed"] == 2
    missing = await web.ask("POST", f"{LETTERS}/groups/nope/requeue", Role.OPERATOR)
    assert (missing.status_code, "'nope'" in missing.json()["error"]) == (404, True)
    assert (await web.ask("POST", path, Role.VIEWER)).status_code == 403


async def test_a_canary_is_started_watched_and_called_off(web: Served) -> None:
    for _ in range(5):
        await dead_letter(web)
    started = await web.ask("POST", f"{LETTERS}/canaries", Role.OPERATOR, json={"size": 2, "filter": {"task": "email"}})
    canary = started.json()
    assert (started.status_code, canary["state"], canary["size"], len(canary["jobs"])) == (201, "trying", 2, 2)
    again = await web.ask("POST", f"{LETTERS}/canaries", Role.OPERATOR, json={"size": 2, "filter": {"task": "email"}})
    assert (again.status_code, f"canary {canary['id']} is under way" in again.json()["error"]) == (409, True)
    path = f"{LETTERS}/canaries/{canary['id']}"
    assert (await web.ask("GET", path, Role.VIEWER)).json() == canary
    assert (await web.ask("GET", f"{LETTERS}/canaries?active=true", Role.VIEWER)).json()["canaries"] == [canary]
    assert (await web.ask("POST", f"{path}/cancel", Role.VIEWER)).status_code == 403
    assert (await web.ask("POST", f"{path}/cancel", Role.OPERATOR)).json()["state"] == "cancelled"
    assert (await web.ask("POST", f"{path}/cancel", Role.OPERATOR)).status_code == 409
    assert (await web.ask("GET", f"{LETTERS}/canaries?active=true")).json()["total"] == 0


@on_one
async def test_bad_canaries_are_named(web: Served) -> None:
    for body, field in (
        ({"size": 0, "filter": {}}, "size"),
        ({"size": 101, "filter": {}}, "size"),
        ({"size": 1}, "filter"),
        ({"size": 1, "filter": {"odd": 1}}, "odd"),
        ({"size": 1, "filter": {"task": "nothing died"}}, "task"),
    ):
        answer = await web.ask("POST", f"{LETTERS}/canaries", Role.OPERATOR, json=body)
        assert (answer.status_code, field in answer.json()["error"]) == (400, True), answer.json()
    unknown = await web.ask("POST", f"{LETTERS}/canaries", Role.OPERATOR, json={"size": 1, "filter": {"fingerprint": "nope"}})
    assert (unknown.status_code, "'nope'" in unknown.json()["error"]) == (404, True)
    assert (await web.ask("GET", f"{LETTERS}/canaries/7")).status_code == 404


async def test_a_correlation_has_the_times_of_a_waterfall(web: Served) -> None:
    store = await web.app.store()
    [parent] = await store.enqueue([NewJob(task="checkout", correlation_id="order-7")])
    held = await claim_one(store)
    await store.enqueue([NewJob(task="charge", correlation_id="order-7", parent_id=parent.id, max_attempts=3)])
    await end(store, FakeClock(held.claimed_at), held)
    child = await claim_one(store)
    await end(store, FakeClock(child.claimed_at), child, failure("card declined"))
    found = (await web.ask("GET", "/api/v1/correlations/order-7", Role.VIEWER)).json()
    first, second = found["jobs"]
    assert (first["number"], first["depth"], second["number"], second["depth"]) == (held.id, 0, child.id, 1)
    assert (first["runs"][0]["status"], first["wait_ms"], first["executions"]) == ("completed", first["runs"][0]["wait_ms"], 1)
    assert (second["runs"][0]["status"], second["runs"][0]["error"], second["state"]) == ("failed", "card declined", "scheduled")
    assert found["at"] >= first["closed_at"]
