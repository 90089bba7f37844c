"""Crontabs, as Debian's and cronie's cron read them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from windlass.core.cadence import NAMED, Cron, zone_of
from windlass.core.record import record
from windlass.errors import InvalidInput

_SETTING = re.compile(r"""^\s*("[^"]*"|'[^']*'|[^\s"'=]+)\s*=\s*(.*?)\s*$""")
_FIELDS = 5
_ZONE = "CRON_TZ"
PREFIX = "crontab:"


@record
class CrontabEntry:
    """One line that runs something."""

    line: int
    name: str
    """The same for the same line whenever it is read; the second of two equal lines has its own."""
    cadence: Cron
    timezone: str
    command: str
    stdin: str | None = None
    user: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@record
class Unreadable:
    """A line that cannot be imported, and why."""

    line: int
    text: str
    reason: str


def parse_crontab(text: str, *, has_users: bool = False, timezone: str = "UTC") -> list[CrontabEntry | Unreadable]:
    """Read a crontab; a system's own has the user's name after the times. `timezone` is that of lines without CRON_TZ."""
    return list(_lines(text, has_users=has_users, timezone=timezone))


def _lines(text: str, *, has_users: bool, timezone: str) -> Iterator[CrontabEntry | Unreadable]:
    env: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        setting = _SETTING.match(stripped)
        if setting is not None:
            env[_unquoted(setting[1])] = _unquoted(setting[2])
            continue
        try:
            entry = _entry(number, stripped, dict(env), has_users=has_users, timezone=timezone)
        except InvalidInput as error:
            yield Unreadable(number, stripped, error.reason)
            continue
        seen[entry.name] += 1
        yield entry if seen[entry.name] == 1 else _renamed(entry, seen[entry.name])


def _entry(number: int, line: str, env: dict[str, str], *, has_users: bool, timezone: str) -> CrontabEntry:
    times, rest = _split(line, 1 if line.startswith("@") else _FIELDS)
    if times.lower() == "@reboot":
        raise InvalidInput("line", line, "@reboot has no times; start it with the machine instead")
    cadence = Cron(times.lower() if times.lower() in NAMED else times)
    user = None
    if has_users:
        user, rest = _split(rest, 1)
    if not rest:
        raise InvalidInput("line", line, "has no command")
    zone = env.pop(_ZONE, timezone)
    zone_of(zone)
    command, stdin = _percent(rest)
    parts = [str(cadence), zone, user, command, stdin, sorted(env.items())]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    return CrontabEntry(number, f"{PREFIX}{digest}", cadence, zone, command, stdin, user, env)


def _split(line: str, fields: int) -> tuple[str, str]:
    """Split off that many fields; the rest of the line stays unchanged."""
    parts = line.split(None, fields)
    if len(parts) < fields:
        raise InvalidInput("line", line, f"is too short: {fields} fields and a command are needed")
    return " ".join(parts[:fields]), parts[fields] if len(parts) > fields else ""


def _percent(text: str) -> tuple[str, str | None]:
    """Split a command from its input: the first bare percent sign ends it, and every further one is a new line."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    return parts[0], "\n".join(parts[1:]) + "\n" if len(parts) > 1 else None


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _renamed(entry: CrontabEntry, place: int) -> CrontabEntry:
    return replace(entry, name=f"{entry.name}-{place}")
