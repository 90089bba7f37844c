"""`windlass alerts`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from windlass.cli import options
from windlass.cli.exit_codes import REFUSED
from windlass.cli.noun import NounGroup
from windlass.cli.output import complain, plain, say, say_either, say_json, say_table
from windlass.cli.session import operating
from windlass.config import load
from windlass.core.alert_rules import check_rule
from windlass.core.alerts import AlertBoard, ShownAlert
from windlass.core.durations import format_duration

_COLUMNS = ("severity", "rule", "subject", "since", "message", "command")
_PAST = ("rule", "subject", "raised_at", "cleared_at", "message")
_RULES = ("rule", "is_on", "threshold", "for", "severity", "watches")


@click.group(cls=NounGroup)
def alerts() -> None:
    """List alerts, worst first, and silence them."""


@alerts.command(name="list")
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None) -> None:
    """List what is wrong now, since when, and the command that helps."""
    with operating(database) as operator:
        seen = operator.alerts.board_sync()
    if as_json:
        say_json({"at": seen.at.isoformat(), "alerts": _fields(seen.open), "silenced": _fields(seen.silenced)})
        return
    if seen.open:
        say_table((_alert(one) for one in seen.open), _COLUMNS)
    else:
        say("all clear")
    _say_silences(seen)


def _alert(one: ShownAlert) -> dict[str, object]:
    alert = one.alert
    return {
        "severity": one.severity,
        "rule": alert.rule,
        "subject": alert.subject or None,
        "since": alert.since,
        "raised_at": alert.raised_at,
        "cleared_at": alert.cleared_at,
        "message": alert.message,
        "command": one.command,
    }


def _fields(some: Iterable[ShownAlert]) -> list[dict[str, object]]:
    found = []
    for one in some:
        fields = plain(one)
        found.append({**fields.pop("alert"), **fields})
    return found


def _say_silences(seen: AlertBoard) -> None:
    for one in seen.silences:
        about = f"{one.rule} ({one.subject})" if one.subject else one.rule
        hidden = sum(alert.silence == one for alert in seen.silenced)
        by = f" by {one.created_by}" if one.created_by else ""
        say(f"{about} is silenced{by} until {one.until:%Y-%m-%d %H:%M} UTC: {one.reason}; {hidden} raised meanwhile")


@alerts.command()
@options.limit
@options.listing
@options.database
def history(*, limit: int, as_json: bool, database: str | None) -> None:
    """List alerts that are over, newest first."""
    with operating(database) as operator:
        found = operator.alerts.history_sync(limit=limit)
    if as_json:
        say_json({"alerts": _fields(found)})
    else:
        say_table((_alert(one) for one in found), _PAST)


@alerts.command()
@options.listing
def rules(*, as_json: bool) -> None:
    """List the rules with the thresholds of the settings here."""
    found = load().alert_rules.values()
    if as_json:
        say_json({"rules": [plain(one) for one in found]})
        return
    shown = (
        {
            "rule": one.name,
            "is_on": one.is_on,
            "threshold": f"{'<' if one.is_floor else '>'} {one.limit()}" if one.limit() else None,
            "for": format_duration(one.hold) if one.hold else None,
            "severity": one.severity,
            "watches": one.watches,
        }
        for one in found
    )
    say_table(shown, _RULES)


@alerts.command()
@click.argument("rule")
@click.option("--for", "for_", metavar="DURATION", required=True, help="As in 2h; at most 30d.")
@click.option("--reason", required=True, help="Why; kept in the audit log.")
@click.option("--subject", default="", help="Only this one, such as a lane. Default: every one.")
@options.as_json
@options.database
def silence(rule: str, *, for_: str, reason: str, subject: str, as_json: bool, database: str | None) -> None:
    """Send no notice of a rule for a while."""
    check_rule(rule)
    with operating(database) as operator:
        made = operator.alerts.silence_sync(rule, for_, reason=reason, subject=subject)
    say_either(made, f"{rule} is silenced until {made.until:%Y-%m-%d %H:%M} UTC", as_json=as_json)


@alerts.command()
@click.argument("rule")
@click.option("--subject", default="", help="The one that was silenced. Default: the silence of every one.")
@options.as_json
@options.database
def unsilence(rule: str, *, subject: str, as_json: bool, database: str | None) -> None:
    """End a silence before its time."""
    with operating(database) as operator:
        is_changed = operator.alerts.unsilence_sync(rule, subject=subject)
    if not is_changed:
        complain(f"{rule} is not silenced; `windlass alerts` lists what is")
        raise click.exceptions.Exit(REFUSED)
    say_either({"ok": True}, f"{rule} is not silenced any more", as_json=as_json)
