"""The dashboard of Grafana and the rules of Prometheus ask only for what a real scrape has."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.prometheus import needs_promtool, promtool, read_openmetrics
from tests.web.serving import served
from windlass import Windlass
from windlass.core.access import Role

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "windlass.json"
_METRIC = re.compile(r"\b(windlass_[a-z_0-9]+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\bby \(([^)]*)\)")


def rules() -> dict[str, str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def panels() -> dict[str, str]:
    board = json.loads(DASHBOARD.read_text())
    return {f"{panel['title']} {target['refId']}": target["expr"] for panel in board["panels"] for target in panel["targets"]}


@pytest.fixture
async def labels(url: str) -> AsyncIterator[Mapping[str, set[str]]]:
    """Scrape a server with something of everything, and give the labels of each metric that has samples."""
    app = Windlass(url)

    @app.task(lane="fast")
    async def good() -> None:
        pass

    async with served(app) as web, app.working():
        await app.wait(await good.enqueue(), timeout=30)
        await app.breakers.force_open("mailer")
        text = (await web.ask("GET", "/metrics", Role.VIEWER, headers={"accept": "application/openmetrics-text"})).text
        found = defaultdict[str, set[str]](set)
        for family in read_openmetrics(text):
            for one in family.samples:
                found[one.name] |= set(one.labels)
        yield found


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    for name, matchers in _METRIC.findall(expression):
        yield name, set(re.findall(r"(\w+)\s*(?:=|!=)", matchers))


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_every_expression_asks_for_metrics_and_labels_that_there_are(labels: Mapping[str, set[str]]) -> None:
    every = {**rules(), **panels()}
    assert len(every) > 30
    for where, expression in every.items():
        wanted = list(asked(expression))
        assert wanted, where
        for name, matched in wanted:
            assert name in labels, f"{where}: a scrape has no {name}"
            assert matched <= labels[name], f"{where}: {name} has no label {matched - labels[name]}"
        known = set().union(*(labels[name] for name, _ in wanted))
        for group in _GROUPED.findall(expression):
            assert set(re.split(r",\s*", group)) <= known, where


def test_rules_say_what_to_do() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert {"summary", "description"} <= rule["annotations"].keys(), rule["alert"]
            assert rule["labels"]["severity"] in {"info", "warning", "critical"}


@needs_promtool
def test_promtool_takes_the_rules_and_every_query_of_the_dashboard(tmp_path: Path) -> None:
    promtool("check", "rules", str(RULES))
    recorded = [
        {"record": f"query:number_{place}", "expr": re.sub(r"\$(task|lane)", ".*", expression)}
        for place, expression in enumerate(panels().values())
    ]
    queries = tmp_path / "queries.yml"
    queries.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    promtool("check", "rules", str(queries))


def test_panels_do_not_overlap_and_variables_are_declared() -> None:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    declared = {one["name"] for one in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)\}?", json.dumps(board["panels"]))) <= declared | {"__all"}
