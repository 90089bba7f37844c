"""Reads the options of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from windlass.client.options import Cadenced, ScheduleOptions, check_names, choice
from windlass.core.cadence import ByHandler, Cron, Every, Misfire, OnExhausted, Overlap, Recurrence, parse_cadence
from windlass.core.durations import parse_duration
from windlass.errors import InvalidInput

RULE_OPTIONS = frozenset(ScheduleOptions.__annotations__)
# What a schedule has beside its rule.
OF_THE_JOB = frozenset({"spawn", "child_key"})
_WHEN = ("every", "cron", "cadence")


def rule_of(cadence: Cadenced | Recurrence, options: Mapping[str, Any]) -> Recurrence:
    """Make a rule of a cadence and its options; a whole rule stays as it is."""
    check_names(options, RULE_OPTIONS)
    given = {name: value for name, value in options.items() if name not in OF_THE_JOB and value is not None}
    if isinstance(cadence, Recurrence):
        if given:
            raise InvalidInput("cadence", cadence, f"has its own {', '.join(sorted(given))}; give one or the other")
        return cadence
    fields = {name: _READ[name](value) if name in _READ else value for name, value in given.items()}
    return Recurrence(cadence=read_cadence(cadence), **fields)


def read_cadence(value: Cadenced) -> Every | Cron | ByHandler:
    """Read a cadence: five cron fields or a name as text, a period as a timedelta."""
    if isinstance(value, timedelta):
        return Every(value)
    return parse_cadence(value) if isinstance(value, str) else _checked(value)


def declared_rule(options: Mapping[str, Any]) -> Recurrence | None:
    """Make the rule a task is declared with, if it has one."""
    given = [name for name in _WHEN if options.get(name) is not None]
    rule = {name: value for name, value in options.items() if name in RULE_OPTIONS and value is not None}
    if not given:
        for name in (*rule, "schedule_payload"):
            if options.get(name) is not None:
                raise InvalidInput(name, options[name], "goes with every, cron or cadence")
        return None
    if len(given) > 1:
        raise InvalidInput(given[1], options[given[1]], f"give {given[0]} or {given[1]}, not both")
    value = options[given[0]]
    return rule_of(Every(parse_duration(value, field="every")) if given[0] == "every" else value, rule)


def _checked(value: Any) -> Every | Cron | ByHandler:
    if not isinstance(value, Every | Cron | ByHandler):
        raise InvalidInput("cadence", value, "must be text such as '@every 30m' or '0 3 * * *', a timedelta or a cadence")
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "misfire": choice(Misfire, "misfire"),
    "overlap": choice(Overlap, "overlap"),
    "on_exhausted": choice(OnExhausted, "on_exhausted"),
    "jitter": lambda value: parse_duration(value, field="jitter"),
}
