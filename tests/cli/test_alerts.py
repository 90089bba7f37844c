"""`windlass alerts`."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.cli.main import main
from windlass.core.alert_rules import RULES, AlertRule, read_rules
from windlass.core.job import NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.command.startswith("windlass ")], ids=lambda rule: rule.name
)
def test_the_command_of_every_alert_can_be_typed(rule: AlertRule) -> None:
    subject = "7" if rule.subject in {"job", "recurring job"} else "my mail in slow lane"
    _, name, *arguments = shlex.split(rule.helps(subject))
    command = main.get_command(click.Context(main), name)
    assert command is not None
    with command.make_context(name, arguments) as context:
        if isinstance(command, click.Group):
            [verb, *rest] = [*context._protected_args, *context.args]
            below = command.get_command(context, verb)
            assert below is not None
            below.make_context(verb, rest, parent=context)
    assert "{" not in rule.helps(subject)


def test_the_task_of_a_subject_is_the_one_that_is_explained() -> None:
    assert RULES["unserved"].helps("check in mail in slow") == "windlass explain --task 'check in mail'"


def raise_depth(app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="t", lane="l")])
    off = ";".join(f"{name}=off" for name in RULES if name != "depth")
    app.alerts.evaluate_sync(read_rules(f"depth=0;{off}"))


@BOTH
def test_alerts_are_listed_silenced_and_heard_again(windlass: Command, ask: Any, app: Windlass) -> None:
    assert windlass("alerts").stdout == "windlass: all clear\n"
    raise_depth(app)
    shown = windlass("alerts").stdout
    assert all(text in shown for text in ("warning", "depth", "1 jobs are pending in all lanes", "windlass lanes"))
    [one] = ask("alerts", "list")["alerts"]
    assert (one["rule"], one["severity"], one["command"]) == ("depth", "warning", "windlass lanes")
    said = windlass("alerts", "silence", "depth", "--for", "2h", "--reason", "import").stdout
    assert said.startswith("windlass: depth is silenced until ")
    shown = windlass("alerts").stdout
    assert ("all clear" in shown, "import; 1 raised meanwhile" in shown) == (True, True)
    assert ask("alerts", "list")["silenced"][0]["silence"]["reason"] == "import"
    assert windlass("alerts", "unsilence", "depth").stdout == "windlass: depth is not silenced any more\n"
    assert "depth is not silenced" in windlass("alerts", "unsilence", "depth", code=1).stderr
    assert ask("alerts", "history") == {"alerts": []}


def test_the_rules_are_listed_with_their_thresholds(windlass: Command, ask: Any) -> None:
    shown = windlass("alerts", "rules").stdout
    assert all(name in shown for name in RULES)
    assert "> 500" in shown
    assert "< 80%" in shown
    assert [one["name"] for one in ask("alerts", "rules")["rules"]] == list(RULES)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("dept", "--for", "1h", "--reason", "x"), "did you mean depth?"),
        (("depth", "--for", "1y", "--reason", "x"), "for: "),
        (("depth", "--for", "1h", "--reason", ""), "reason: must be a text"),
    ],
)
def test_a_bad_silence_is_refused(windlass: Command, typed: tuple[str, ...], message: str) -> None:
    assert message in windlass("alerts", "silence", *typed, code=2).stderr
