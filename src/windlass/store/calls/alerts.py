"""Alerts are read and silenced; `alert_evaluation` raises and clears them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from windlass.core.alert_rules import RULES, check_rule
from windlass.core.alerts import Alert, AlertBoard, ShownAlert, Silence, board, show
from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text
from windlass.core.durations import format_duration, parse_duration
from windlass.core.payload import encode_object
from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.store.calls import chores
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

MAX_HISTORY = 500
MOST_OPEN = 1000
_LONGEST = timedelta(days=30)
_LEAST = timedelta(seconds=1)
_MOST_REASON = 500

_ALERT = Shape.of(Alert)
_SILENCE = Shape.of(Silence)
SHAPES |= {
    **dict.fromkeys(("open_alerts", "cleared_alerts"), _ALERT),
    **dict.fromkeys(("list_silences", "silence_alerts", "unsilence_alerts"), _SILENCE),
}


def read_board() -> Call[AlertBoard]:
    """Read the alerts that are raised, worst first, and what is silenced."""

    def steps(means: Means) -> Steps[AlertBoard]:
        [[at]] = yield Step("clock", {})
        raised = [one for one in read_alerts((yield Step("open_alerts", {"limit": MOST_OPEN}))) if one.raised_at is not None]
        silences = read_silences((yield Step("list_silences", {})))
        return board(at, raised, silences, (yield from chores.list_chores().steps(means)))

    return Call(steps, is_read=True, is_snapshot=True)


def history(*, limit: int = 100) -> Call[list[ShownAlert]]:
    """Read the alerts that were cleared, newest first; they are kept for 90 days."""
    check_range("limit", limit, 1, MAX_HISTORY)
    return single("cleared_alerts", {"limit": limit}, lambda found: [show(one) for one in read_alerts(found)], is_read=True)


def silence(rule: str, for_: timedelta | float | str, *, reason: str, subject: str = "") -> Call[Silence]:
    """Send no notice of a rule, or of one of its subjects, for a while, at most 30 days; a silence that is there is replaced."""
    check_rule(rule)
    length = parse_duration(for_, field="for")
    if not _LEAST <= length <= _LONGEST:
        raise InvalidInput("for", for_, "must be a duration of 1s to 30d")
    check_text("reason", reason, _MOST_REASON)
    if subject:
        check_text("subject", subject, _MOST_REASON)
        if not RULES[rule].subject:
            raise InvalidInput("subject", subject, f"{rule} is one alert of the whole queue and has no subjects; leave it out")

    def steps(means: Means) -> Steps[Silence]:
        params = {"rule": rule, "subject": subject, "lasts": length, "reason": reason, "principal": means.principal}
        return read_silences((yield Step("silence_alerts", params)))[0]

    return Call(steps, is_single=True, deed=lambda made: _was_silenced(made, length), wakes=lambda _: {Topic.ALERTS})


def unsilence(rule: str, *, subject: str = "") -> Call[bool]:
    """End a silence before its time; False when there is none."""
    check_rule(rule)
    deed = Deed("unsilence alerts", _target(rule, subject))
    params = {"rule": rule, "subject": subject}
    return single("unsilence_alerts", params, bool, deed=lambda gone: deed if gone else None, wakes=_woken_if)


def _woken_if(is_changed: bool) -> Collection[Topic]:  # noqa: FBT001 - the answer of a call
    return {Topic.ALERTS} if is_changed else ()


def _was_silenced(made: Silence, length: timedelta) -> Deed:
    details = encode_object({"for": format_duration(length), "reason": made.reason})
    return Deed("silence alerts", _target(made.rule, made.subject), "done", details)


def _target(rule: str, subject: str) -> str:
    return f"alert:{rule}" + (f":{subject}" if subject else "")


def read_alerts(found: Sequence[Row]) -> list[Alert]:
    """Read rows of alerts."""
    return [Alert(*row) for row in found]


def read_silences(found: Sequence[Row]) -> list[Silence]:
    """Read rows of silences."""
    return [Silence(*row) for row in found]
