"""The rules of alerts and the setting that changes them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from windlass.config import load
from windlass.core.alert_rules import RULES, Unit, read_rules
from windlass.core.durations import format_duration
from windlass.errors import ConfigError, InvalidInput

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"


def test_a_setting_changes_what_it_names() -> None:
    found = read_rules("pending=200,for=10m; error_rate=20%;running=30m;lost_leases=off;breaker=for=1m")
    assert (found["pending"].threshold, found["pending"].hold) == (200, timedelta(minutes=10))
    assert (found["error_rate"].threshold, found["running"].threshold) == (0.2, 1800)
    assert (found["lost_leases"].is_on, found["breaker"].is_on) == (False, True)
    assert found["breaker"].hold == timedelta(minutes=1)
    assert found["depth"] == RULES["depth"]
    assert list(found) == list(RULES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pendng=5", "'pendng=5': 'pendng': is no alert; did you mean pending"),
        ("pending", "'pending': write rule=threshold"),
        ("pending=many", "'pending=many': 'many': is neither a number nor off"),
        ("pending=-1", "must be a number from 0 on"),
        ("pending=nan", "must be a number from 0 on"),
        ("error_rate=20", "must be a share from 0 to 1, or a percentage"),
        ("running=long", "'running=long'"),
        ("breaker=5", "breaker has no threshold"),
        ("pending=5,for=ever", "'pending=5,for=ever'"),
        ("depth=5;depth=6", "names depth twice"),
    ],
)
def test_a_bad_setting_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match="alerts: "):
        read_rules(text)
    with pytest.raises(ConfigError) as refused:
        load(environ={"WINDLASS_ALERTS": text})
    assert str(refused.value).startswith("WINDLASS_ALERTS: ")
    assert message in str(refused.value)


def test_a_rule_clears_below_where_it_is_raised() -> None:
    for rule in RULES.values():
        step = -0.001 if rule.is_floor else 0.001
        assert rule.is_over(rule.threshold + step), rule.name
        assert not rule.is_over(rule.threshold), rule.name
        if rule.threshold:
            assert rule.is_warm(rule.threshold), rule.name
    assert RULES["success_rate"].is_warm(0.83)
    assert not RULES["success_rate"].is_warm(0.85)
    assert not RULES["pending"].is_warm(400)


def test_the_page_lists_every_rule_as_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for rule in RULES.values():
        sign = "" if rule.unit is Unit.NONE else f"{'<' if rule.is_floor else '>'} {rule.limit()}"
        hold = format_duration(rule.hold) if rule.hold else ""
        row = (f"`{rule.name}`", rule.watches, rule.subject, sign, hold, rule.severity.value, rule.remedy, f"`{rule.command}`")
        assert f"| {' | '.join(row)} |" in text, f"docs/alerts.md: | {' | '.join(row)} |"
