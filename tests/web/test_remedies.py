"""What is not there is answered with what was asked for and where to look for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.serving import served
from windlass import Windlass
from windlass.core.access import Role


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "jobs/99", 404, ("job 99 not found", "GET /api/v1/jobs lists them")),
        ("POST", "jobs/nope/cancel", 404, ("job 'nope' not found", "its number or UUID")),
        ("GET", "jobs/99/explain", 404, ("job 99 not found", "GET /api/v1/jobs lists them")),
        ("GET", "executions/99", 404, ("execution '99' not found", "GET /api/v1/jobs/{id}/executions")),
        ("GET", "dead-letters/99", 404, ("dead letter 99 not found", "GET /api/v1/dead-letters lists them")),
        ("GET", "dead-letters/canaries/99", 404, ("canary 99 not found", "windlass dead canaries")),
        ("GET", "correlations/order-8", 404, ("correlation 'order-8' not found", "GET /api/v1/jobs")),
        ("GET", "lanes/maill", 404, ("lane 'maill' not found", "GET /api/v1/lanes lists them")),
        ("GET", "tasks/mial", 404, ("task 'mial' not found", "GET /api/v1/tasks lists them")),
        ("GET", "breakers/partner", 404, ("breaker 'partner' not found", "GET /api/v1/breakers lists them")),
        ("POST", "workers/nobody/pause", 404, ("worker 'nobody' not found", "windlass workers")),
        ("GET", "sources/none", 404, ("source 'none' not found", "GET /api/v1/sources lists them")),
        ("GET", "feeds/99", 404, ("feed 99 not found", "GET /api/v1/feeds lists them")),
        ("GET", "pages/99", 404, ("page 99 not found", "GET /api/v1/pages lists them")),
        ("DELETE", "reminders/99", 404, ("reminder 99 not found", "GET /api/v1/reminders lists them")),
        ("DELETE", "tokens/99", 404, ("token 99 not found", "GET /api/v1/tokens lists them")),
        ("DELETE", "alerts/depth/silence", 404, ("alert 'depth' is not silenced", "GET /api/v1/alerts")),
        ("GET", "nothing", 404, ("nothing at /api/v1/nothing", "GET /openapi.json lists every route")),
        ("PATCH", "jobs", 405, ("PATCH is not a method of this path", "it has GET, HEAD, POST")),
    ],
)
async def test_what_is_not_there_is_answered_with_where_to_look(
    tmp_path: Path, *, method: str, path: str, status: int, words: tuple[str, ...]
) -> None:
    async with served(Windlass(f"sqlite:///{tmp_path / 'jobs.db'}")) as web:
        answer = await web.ask(method, f"/api/v1/{path}", Role.ADMIN)
    assert answer.status_code == status
    assert all(word in answer.json()["error"] for word in words), answer.text
