"""Pausing, resuming and draining over HTTP: an unknown name is 404, and `*` is every lane."""

from __future__ import annotations

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.job import NewJob
from windlass.core.known_task import DeclaredTask


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
@pytest.mark.parametrize("noun", ["lanes", "tasks"])
async def test_a_name_that_nothing_declared_is_not_found_unless_forced(web: Served, noun: str, verb: str) -> None:
    store = await web.app.store()
    await store.tasks.declare([DeclaredTask(name="letters", lane="letters")])
    refused = await web.ask("POST", f"/api/v1/{noun}/leters/{verb}", Role.OPERATOR)
    assert refused.status_code == 404
    assert "did you mean 'letters'?" in refused.json()["error"]
    assert (await web.ask("POST", f"/api/v1/{noun}/letters/{verb}", Role.OPERATOR)).status_code == 200
    assert (await web.ask("POST", f"/api/v1/{noun}/leters/{verb}?force=true", Role.OPERATOR)).status_code == 200


async def test_every_lane_is_drained_and_resumed_at_once(web: Served) -> None:
    store = await web.app.store()
    await store.enqueue([NewJob(task="a", lane="one"), NewJob(task="a", lane="pull")])
    drained = (await web.ask("POST", "/api/v1/lanes/*/drain", Role.OPERATOR)).json()
    assert drained == {"name": "*", "running": 0, "is_settled": True, "is_done": True}
    await store.enqueue([NewJob(task="a", lane="later")])
    assert (await store.slices()).open == ()
    pulled = await web.ask("GET", "/api/pull_job", Role.WORKER)
    assert pulled.json() == {"job": None, "stopped": True}
    assert (await web.ask("POST", "/api/v1/lanes/*/pause", Role.OPERATOR)).json()["is_changed"] is False
    resumed = (await web.ask("POST", "/api/v1/lanes/*/resume", Role.OPERATOR)).json()
    assert (resumed["is_paused"], resumed["is_changed"]) == (False, True)
    assert {part.lane for part in (await store.slices()).open} == {"one", "pull", "later"}
