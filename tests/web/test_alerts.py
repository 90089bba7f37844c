"""Alerts over HTTP, on the dashboard and as events."""

from __future__ import annotations

import re

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.alert_rules import RULES, read_rules
from windlass.core.job import NewJob

on_one = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
HOSTILE = "<script>alert('x')</script>"
HTML = {"accept": "text/html,application/xhtml+xml"}


async def raise_some(web: Served) -> None:
    """Let a lane with a hostile name have too many jobs, and the whole queue too."""
    store = await web.app.store()
    await store.enqueue([NewJob(task="t", lane=HOSTILE), NewJob(task="t", lane=HOSTILE)])
    off = ";".join(f"{name}=off" for name in RULES if name not in {"pending", "depth", "failed_rate"})
    await store.alerts.evaluate(read_rules(f"pending=1,for=0s;depth=1;{off}"))


async def test_alerts_are_listed_silenced_and_heard_again(web: Served) -> None:
    assert (await web.ask("GET", "/api/v1/alerts", Role.VIEWER)).json()["alerts"] == []
    await raise_some(web)
    found = (await web.ask("GET", "/api/v1/alerts", Role.VIEWER)).json()
    assert [(one["rule"], one["subject"]) for one in found["alerts"]] == [("pending", HOSTILE), ("depth", "")]
    assert found["alerts"][1]["command"] == "windlass lanes"
    asked = {"for": "2h", "reason": "a deploy", "subject": HOSTILE}
    assert (await web.ask("POST", "/api/v1/alerts/pending/silence", Role.PRODUCER, json=asked)).status_code == 403
    made = (await web.ask("POST", "/api/v1/alerts/pending/silence", Role.OPERATOR, json=asked)).json()
    assert (made["rule"], made["subject"], made["reason"]) == ("pending", HOSTILE, "a deploy")
    found = (await web.ask("GET", "/api/v1/alerts", Role.VIEWER)).json()
    assert ([one["rule"] for one in found["alerts"]], [one["rule"] for one in found["silenced"]]) == (["depth"], ["pending"])
    path = "/api/v1/alerts/pending/silence"
    ended = await web.ask("DELETE", path, Role.OPERATOR, params={"subject": HOSTILE})
    assert ended.status_code == 200
    again = await web.ask("DELETE", path, Role.OPERATOR, params={"subject": HOSTILE})
    assert (again.status_code, "is not silenced" in again.json()["error"]) == (404, True)
    assert len((await web.ask("GET", "/api/v1/alerts", Role.VIEWER)).json()["alerts"]) == 2
    rules = (await web.ask("GET", "/api/v1/alerts/rules", Role.VIEWER)).json()
    assert [one["name"] for one in rules["rules"]] == list(RULES)
    assert (await web.ask("GET", "/api/v1/alerts/history", Role.VIEWER)).json()["alerts"] == []
    assert (await web.ask("GET", "/api/v1/metrics/summary", Role.VIEWER)).json()["alerts"] == 2


@on_one
@pytest.mark.parametrize(
    ("rule", "body", "message"),
    [
        ("dept", {"for": "1h", "reason": "x"}, "rule: is no alert; did you mean depth?"),
        ("depth", {"for": "99d", "reason": "x"}, "for: must be a duration of 1s to 30d"),
        ("depth", {"for": "1h"}, "reason"),
        ("depth", {"for": "1h", "reason": ""}, "reason"),
        ("depth", {"for": "1h", "reason": "x", "who": "me"}, "who"),
    ],
)
async def test_a_bad_silence_names_the_field(web: Served, rule: str, body: dict[str, str], message: str) -> None:
    answer = await web.ask("POST", f"/api/v1/alerts/{rule}/silence", Role.OPERATOR, json=body)
    assert answer.status_code in {400, 422}
    assert message in answer.json()["error"]


@on_one
async def test_pages_begin_with_the_worst(web: Served) -> None:
    first = (await web.ask("GET", "/", Role.VIEWER, headers=HTML)).text
    assert "All clear." in first
    await raise_some(web)
    page = (await web.ask("GET", "/alerts", Role.VIEWER, headers=HTML)).text
    assert "2 jobs are pending in all lanes" in page
    assert HOSTILE not in page
    assert re.search(r'href="/jobs\?state=pending(&|&amp;)lane=%3Cscript', page)
    assert "Silence" not in page
    assert 'href="/alerts" data-key="s" aria-current="page"' in page


@on_one
async def test_the_first_page_names_the_worst(web: Served) -> None:
    await raise_some(web)
    page = (await web.ask("GET", "/", Role.VIEWER, headers=HTML)).text
    assert "All clear." not in page
    assert '<a href="/lanes">2 jobs are pending in all lanes (more than 1)</a>' in page
    assert HOSTILE not in page
    store = await web.app.store()
    await store.alerts.silence("depth", "1h", reason=HOSTILE)
    await store.alerts.evaluate(read_rules(";".join(f"{name}=off" for name in RULES if name != "depth") + ";depth=1"))
    shown = (await web.ask("GET", "/alerts", Role.VIEWER, headers=HTML)).text
    assert "2 jobs are pending in all lanes" in shown
    assert 'id="silenced-title"' in shown
    assert 'id="past-1"' in shown
    assert HOSTILE not in shown
