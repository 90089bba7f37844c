"""Alerts over HTTP: the verbs, and the records of their answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from windlass.core.durations import Duration
from windlass.core.record import record
from windlass.http_client.ask import API, Ask, as_list, as_one, get, post, seconds, word
from windlass.wire.operations import AlertOut, SilenceOut

_ALERTS = f"{API}/alerts"
RemoteSilence = SilenceOut
RemoteAlert = AlertOut


@record(kw_only=True)
class RemoteAlertBoard:
    """The alerts of one moment, worst first."""

    at: datetime
    alerts: tuple[RemoteAlert, ...]
    """Raised, and not silenced."""
    silenced: tuple[RemoteAlert, ...] = ()
    silences: tuple[RemoteSilence, ...] = ()


def board() -> Ask[RemoteAlertBoard]:
    """Read the alerts that are raised, worst first, and what is silenced."""
    return get(_ALERTS, as_one(RemoteAlertBoard))


def history(*, limit: int = 100) -> Ask[list[RemoteAlert]]:
    """Read the alerts that were cleared, newest first."""
    return get(f"{_ALERTS}/history", as_list("alerts", RemoteAlert), {"limit": limit})


def silence(rule: str, for_: Duration, *, reason: str, subject: str = "") -> Ask[RemoteSilence]:
    """Send no notice of a rule, or of one of its subjects, for a while."""
    body = {"for": seconds(for_, "for"), "reason": reason, "subject": subject or None}
    return post(f"{_ALERTS}/{word(rule)}/silence", as_one(RemoteSilence), body, is_repeatable=True)


def unsilence(rule: str, *, subject: str = "") -> Ask[bool]:
    """End a silence before its time; raises NotFound when there is none."""
    query = {"subject": subject} if subject else {}
    return Ask(method="DELETE", path=f"{_ALERTS}/{word(rule)}/silence", read=_is_ok, query=query)


def _is_ok(answer: Any) -> bool:
    return bool(answer["ok"])
