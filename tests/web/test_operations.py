"""Dead letters, breakers, correlations and chores over HTTP: the async jobs system's operations, end to end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.ids import job_uuid
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.core.related import MOST_RELATED

on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
"""Where the store's own contract has shown the rest on every database."""
EVIL = ["'; drop table windlass_jobs; --", "<script>alert(1)</script>", "ünï/çødé", "a b", "../..", "\u202e", "%"]


async def dead_letter(web: Served, task: str = "email", error: str = "mailbox full", **options: Any) -> tuple[int, int]:
    """Let a job die; gives its number and its letter's."""
    store = await web.app.store()
    [made] = await store.enqueue([NewJob(task=task, **options)])
    await store.bury([made.id], error)
    [letter] = await store.list_dead_letters(made.id)
    return made.id, letter.id


async def test_dead_letters_are_listed_page_by_page_and_filtered(web: Served) -> None:
    found = [await dead_letter(web, f"task-{place % 2}") for place in range(5)]
    first = (await web.ask("GET", "/api/v1/dead-letters?limit=3", Role.VIEWER)).json()
    assert ([one["id"] for one in first["dead_letters"]], first["total"]) == ([found[4][1], found[3][1], found[2][1]], 5)
    rest = (await web.ask("GET", f"/api/v1/dead-letters?limit=3&cursor={first['next']}", Role.VIEWER)).json()
    assert ([one["id"] for one in rest["dead_letters"]], rest["next"]) == ([found[1][1], found[0][1]], None)
    for query, total in (("task=task-0", 3), ("status=open", 5), ("status=closed", 0), ("since=2100-01-01T00:00:00Z", 0)):
        assert (await web.ask("GET", f"/api/v1/dead-letters?{query}")).json()["total"] == total, query
    mark = first["dead_letters"][0]["fingerprint"]
    assert (await web.ask("GET", f"/api/v1/dead-letters?fingerprint={mark}")).json()["total"] in {3, 5}
    assert (await web.ask("GET", "/api/v1/dead-letters?limit=1000000")).status_code == 200


@on_one
async def test_bad_filters_of_dead_letters_are_named(web: Served) -> None:
    for query in ("limit=0", "status=odd", "cursor=odd", "since=yesterday", "since=2024-01-01T00:00:00", "task="):
        answer = await web.ask("GET", f"/api/v1/dead-letters?{query}")
        assert (answer.status_code, query.partition("=")[0] in answer.json()["error"]) == (400, True), query


@on_one
async def test_a_dead_letter_has_its_job_and_hides_secrets_from_viewers(web: Served) -> None:
    payload = encode_object({"to": "ann", "password": "hunter2"})
    job, letter = await dead_letter(web, payload=payload, correlation_id="user-action-123")
    seen = (await web.ask("GET", f"/api/v1/dead-letters/{letter}", Role.OPERATOR)).json()
    assert (seen["job_id"], seen["error_message"], seen["correlation_id"]) == (job, "mailbox full", "user-action-123")
    assert seen["original_job"]["payload"] == {"to": "ann", "password": "hunter2"}
    assert (seen["original_job"]["type"], seen["acknowledged"], seen["status"]) == ("email", False, "open")
    hidden = (await web.ask("GET", f"/api/v1/dead-letters/{letter}", Role.VIEWER)).json()
    assert hidden["original_job"]["payload"] == {"to": "ann", "password": "[redacted]"}
    assert "hunter2" not in (await web.ask("GET", "/api/v1/dead-letters", Role.VIEWER)).text


async def test_a_letter_is_acknowledged_once_by_whoever_asks(web: Served) -> None:
    _, letter = await dead_letter(web)
    path = f"/api/v1/dead-letters/{letter}/acknowledge"
    done = (await web.ask("POST", path, Role.OPERATOR, json={"note": "known"})).json()
    assert (done["acknowledged"], done["acknowledged_by"].endswith(":operator"), done["note"]) == (True, True, "known")
    again = await web.ask("POST", path, Role.ADMIN)
    assert (again.status_code, f"{done['acknowledged_by']} acknowledged it before" in again.json()["error"]) == (409, True)
    assert (await web.ask("GET", f"/api/v1/dead-letters/{letter}")).json()["note"] == "known"
    assert (await web.ask("GET", "/api/v1/dead-letters?status=acknowledged")).json()["total"] == 1


async def test_a_requeued_letter_runs_its_job_once_more_and_only_once(web: Served) -> None:
    job, letter = await dead_letter(web, correlation_id="c")
    path = f"/api/v1/dead-letters/{letter}/requeue"
    done = (await web.ask("POST", path, Role.OPERATOR)).json()
    assert (done["requeued_id"], done["status"], done["closed_reason"]) == (job, "closed", "requeued")
    back = await web.app.get(job)
    assert (back.state, back.correlation_id) == ("pending", "c")
    again = await web.ask("POST", path, Role.OPERATOR)
    assert (again.status_code, "it was requeued before" in again.json()["error"]) == (409, True)


@on_one
async def test_a_requeue_into_a_taken_slot_names_the_holder(web: Served) -> None:
    job, letter = await dead_letter(web, unique_key="k")
    [holder] = await (await web.app.store()).enqueue([NewJob(task="email", unique_key="k")])
    answer = await web.ask("POST", f"/api/v1/dead-letters/{letter}/requeue", Role.OPERATOR)
    assert (answer.status_code, answer.json()["error"]) == (
        409,
        f"job {job} cannot come back: job {holder.id} holds its unique key",
    )


async def test_many_letters_are_settled_by_number_or_by_filter_with_a_dry_run(web: Served) -> None:
    letters = [(await dead_letter(web, f"task-{place % 2}"))[1] for place in range(6)]
    ids = [*letters[:3], 10**9]
    dry = await web.ask("POST", "/api/v1/dead-letters/acknowledge", Role.OPERATOR, json={"ids": ids, "dry_run": True})
    assert dry.json() == {"matched": 3, "changed": 0, "refused": 0, "missing": 1, "dry_run": True}
    for changed, refused in ((3, 0), (0, 3)):
        done = await web.ask("POST", "/api/v1/dead-letters/acknowledge", Role.OPERATOR, json={"ids": ids, "note": "seen"})
        assert done.json() == {"matched": 3, "changed": changed, "refused": refused, "missing": 1, "dry_run": False}
    by_task = {"filter": {"task": "task-1"}}
    assert (await web.ask("POST", "/api/v1/dead-letters/requeue", Role.OPERATOR, json=by_task)).json()["changed"] == 3
    everything = await web.ask("POST", "/api/v1/dead-letters/requeue", Role.OPERATOR, json={"filter": {}})
    assert (everything.json()["matched"], everything.json()["changed"]) == (3, 3)
    assert (await web.ask("GET", "/api/v1/dead-letters?status=closed")).json()["total"] == 6
    actions = [one["action"] for one in (await web.ask("GET", "/api/v1/audit")).json()["audit"]]
    assert (actions.count("requeue"), actions.count("acknowledge")) == (2, 2)


@on_one
async def test_nobody_has_to_guess_which_letters_are_meant(web: Served) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"ids": [1], "filter": {}},
        {"ids": ["1"]},
        {"ids": [0]},
        {"filter": {"tsk": "a"}},
        {"ids": [1], "by": "ann"},
    ]
    for body in bodies:
        for verb in ("acknowledge", "requeue"):
            assert (await web.ask("POST", f"/api/v1/dead-letters/{verb}", json=body)).status_code == 400, body


@on_one
async def test_deaths_of_one_kind_are_grouped(web: Served) -> None:
    for place in range(3):
        await dead_letter(web, error=f"timeout after {place} s")
    await dead_letter(web, "sms", error="no credit")
    groups = (await web.ask("GET", "/api/v1/dead-letters/groups?open=true", Role.VIEWER)).json()
    assert (groups["total"], {one["task"]: one["letters"] for one in groups["groups"]}) == (2, {"email": 3, "sms": 1})


@on_one
async def test_unknown_letters_breakers_chores_and_correlations_are_not_found(web: Served) -> None:
    for method, path in (
        ("GET", "dead-letters/99"),
        ("POST", "dead-letters/99/acknowledge"),
        ("POST", "dead-letters/99/requeue"),
        ("GET", "breakers/none"),
        ("GET", "breakers/none/history"),
        ("POST", "breakers/none/reset"),
        ("POST", "chores/none/pause"),
        ("POST", "chores/none/resume"),
        ("GET", "correlations/none"),
        ("GET", f"correlations/{job_uuid(99)}"),
    ):
        answer = await web.ask(method, f"/api/v1/{path}")
        assert (answer.status_code, "not found" in answer.json()["error"]) == (404, True), path


async def test_breakers_are_forced_open_for_a_while_or_for_good_and_reset(web: Served) -> None:
    path = "/api/v1/breakers/email-service"
    forced = (await web.ask("POST", f"{path}/force-open", Role.OPERATOR)).json()
    assert (forced["state"], forced["is_forced"], forced["probe_at"]) == ("open", True, None)
    for wait in ("90s", 90):
        answer = (await web.ask("POST", f"{path}/force-open", Role.OPERATOR, json={"for": wait})).json()
        breaker = await web.app.breakers.get("email-service")
        assert breaker is not None
        assert breaker.probe_at is not None
        assert breaker.opened_at is not None
        assert breaker.probe_at - breaker.opened_at == timedelta(seconds=90)
        assert answer["probe_at"] is not None
    closed = (await web.ask("POST", f"{path}/reset", Role.OPERATOR)).json()
    assert (closed["state"], (await web.ask("GET", path, Role.VIEWER)).json()) == ("closed", closed)
    history = (await web.ask("GET", f"{path}/history", Role.VIEWER)).json()
    assert ([one["reason"] for one in history["events"]], history["total"]) == (["reset", "forced", "forced", "forced"], 4)
    for bad in ({"for": "soon"}, {"for": 0}, {"for": -1}, {"wait": 1}, {"for": "200000d"}):
        assert (await web.ask("POST", f"{path}/force-open", Role.OPERATOR, json=bad)).status_code == 400, bad


@on_one
async def test_breakers_are_listed_by_name_page_by_page(web: Served) -> None:
    for name in ("b", "a", "c"):
        await web.ask("POST", f"/api/v1/breakers/{name}/force-open")
    first = (await web.ask("GET", "/api/v1/breakers?limit=2", Role.VIEWER)).json()
    assert ([one["name"] for one in first["breakers"]], first["total"], first["next"]) == (["a", "b"], 3, "b")
    rest = (await web.ask("GET", "/api/v1/breakers?after=b", Role.VIEWER)).json()
    assert ([one["name"] for one in rest["breakers"]], rest["next"]) == (["c"], None)


@on_one
async def test_any_name_of_a_breaker_or_correlation_comes_back_as_data(web: Served) -> None:
    for name in EVIL:
        path = quote(name, safe="")
        assert (await web.ask("POST", f"/api/v1/breakers/{path}/force-open")).json()["name"] == name
        assert (await web.ask("GET", f"/api/v1/breakers/{path}")).json()["name"] == name
        await (await web.app.store()).enqueue([NewJob(task="t", correlation_id=name)])
        traced = (await web.ask("GET", f"/api/v1/correlations/{path}")).json()
        assert (traced["correlation_id"], traced["total"]) == (name, 1)


@on_one
async def test_an_action_is_traced_through_its_jobs(web: Served) -> None:
    store = await web.app.store()
    [root] = await store.enqueue([NewJob(task="order", correlation_id="user-action-123")])
    [mail] = await store.enqueue([NewJob(task="email", correlation_id="user-action-123", parent_id=root.id)])
    [late] = await store.enqueue([NewJob(task="sms", correlation_id="user-action-123", parent_id=root.id)])
    [log] = await store.enqueue([NewJob(task="log", correlation_id="user-action-123", parent_id=mail.id)])
    await store.enqueue([NewJob(task="other", correlation_id="user-action-124")])
    traced = (await web.ask("GET", "/api/v1/correlations/user-action-123", Role.VIEWER)).json()
    assert [(one["number"], one["depth"], one["parent_id"]) for one in traced["jobs"]] == [
        (root.id, 0, None),
        (mail.id, 1, str(job_uuid(root.id))),
        (log.id, 2, str(job_uuid(mail.id))),
        (late.id, 1, str(job_uuid(root.id))),
    ]
    assert (traced["total"], traced["is_total_exact"], traced["jobs"][0]["id"]) == (4, True, str(job_uuid(root.id)))


@on_one
async def test_a_jobs_own_uuid_finds_it_and_its_children(web: Served) -> None:
    store = await web.app.store()
    [root] = await store.enqueue([NewJob(task="order")])
    [child] = await store.enqueue([NewJob(task="email", parent_id=root.id)])
    traced = (await web.ask("GET", f"/api/v1/correlations/{job_uuid(root.id)}", Role.VIEWER)).json()
    assert [(one["number"], one["depth"]) for one in traced["jobs"]] == [(root.id, 0), (child.id, 1)]


async def test_a_long_correlation_is_read_page_by_page(web: Served) -> None:
    store = await web.app.store()
    await store.enqueue([NewJob(task="email", correlation_id="order-7") for _ in range(MOST_RELATED + 2)])
    path = "/api/v1/correlations/order-7"
    first = (await web.ask("GET", path, Role.VIEWER)).json()
    assert (len(first["jobs"]), first["total"], first["is_total_exact"]) == (MOST_RELATED, MOST_RELATED, False)
    last = (await web.ask("GET", f"{path}?after={first['next']}", Role.VIEWER)).json()
    assert (len(last["jobs"]), last["next"], last["is_total_exact"]) == (2, None, False)
    assert len({one["number"] for one in first["jobs"] + last["jobs"]}) == MOST_RELATED + 2
    beyond = await web.ask("GET", f"{path}?after={last['jobs'][-1]['number']}", Role.VIEWER)
    assert (beyond.status_code, beyond.json()["jobs"]) == (200, [])


@on_one
async def test_chores_are_listed_paused_and_resumed_by_an_admin(web: Served) -> None:
    chores = (await web.app.store()).chores
    assert await chores.due("prune", timedelta(minutes=1), "w") is not None
    listed = (await web.ask("GET", "/api/v1/chores", Role.VIEWER)).json()
    assert (listed["total"], listed["chores"][0]["name"], listed["chores"][0]["is_paused"]) == (1, "prune", False)
    assert (await web.ask("POST", "/api/v1/chores/prune/pause", Role.OPERATOR)).status_code == 403
    assert (await web.ask("POST", "/api/v1/chores/prune/pause")).json()["is_paused"]
    assert not (await web.ask("POST", "/api/v1/chores/prune/resume")).json()["is_paused"]
    lines = (await web.ask("GET", "/api/v1/audit?target=chore%3Aprune")).json()["audit"]
    assert [one["action"] for one in lines] == ["resume chore", "pause chore"]


@on_one
async def test_a_chore_may_be_paused_before_it_was_due_and_a_mistyped_one_is_named(web: Served) -> None:
    assert not (await web.ask("POST", "/api/v1/chores/age/resume")).json()["is_paused"]
    assert (await web.ask("POST", "/api/v1/chores/age/pause")).json()["is_paused"]
    refused = await web.ask("POST", "/api/v1/chores/promot/pause")
    assert (refused.status_code, "did you mean promote?" in refused.json()["error"]) == (404, True)


@pytest.mark.parametrize("path", ["/api/v1/audit", "/api/v1/dead-letters"])
async def test_a_time_is_written_out_and_no_count_of_seconds(web: Served, path: str) -> None:
    assert (await web.ask("GET", f"{path}?since=2026-01-15T10:30:00Z")).status_code == 200
    refused = await web.ask("GET", f"{path}?since=0")
    assert (refused.status_code, "2025-12-29T10:30:00Z" in refused.json()["error"]) == (400, True)
