"""The audit log: who did what to which job or setting, chained so that a later change shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from windlass.core.checks import check_instant, check_text
from windlass.core.job import MAX_KEY, MAX_NAME
from windlass.core.payload import decode_object
from windlass.core.record import record


@record
class Actor:
    """The principal of a change, as the audit log names it."""

    principal: str
    request_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name the log cannot keep."""
        check_text("principal", self.principal, MAX_NAME)
        if self.request_id is not None:
            check_text("request_id", self.request_id, MAX_NAME)


class Deed(NamedTuple):
    """One thing done or refused; `details` is JSON text."""

    action: str
    target: str | None = None
    outcome: str = "done"
    details: str | None = None


@record
class AuditEntry:
    """A line of the audit log.

    `details_json` is text as it is stored. Once upkeep has chained it, `place` is its place in the chain and `chain` the digest
    over it and all lines before.
    """

    id: int
    at: datetime
    principal: str
    action: str
    target: str | None
    outcome: str
    details_json: str | None
    request_id: str | None
    chain: str | None
    place: int | None = None

    @property
    def details(self) -> dict[str, Any] | None:
        """What was done, as far as the action and the target do not show it; read anew each time."""
        return None if self.details_json is None else decode_object(self.details_json, field="details")


@record(kw_only=True)
class AuditFilter:
    """Which lines to list; an empty field does not restrict them."""

    principal: str | None = None
    action: str | None = None
    target: str | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        """Refuse what no line could have."""
        for field in ("principal", "action", "target"):
            if (value := getattr(self, field)) is not None:
                check_text(field, value, MAX_KEY)
        if self.since is not None:
            check_instant("since", self.since)


ALL = AuditFilter()


class ChainLink(NamedTuple):
    """How far the chain goes. Kept elsewhere, it also shows when the newest lines were cut off."""

    place: int
    chain: str


START = ChainLink(0, "")
REFUSED = "refuse"
"""The action of a line about a request that was not let in; only such lines may be pruned."""
PRUNED = "prune refusals"


class Gap(NamedTuple):
    """Places of the chain whose lines were pruned, and the link that the last of them had."""

    first: int
    end: ChainLink


def gaps_of(entries: Sequence[AuditEntry]) -> list[Gap]:
    """Find the runs of neighbouring places among chained lines, which come in their order."""
    found: list[Gap] = []
    for entry in entries:
        link = link_of(entry)
        is_next = bool(found) and found[-1].end.place + 1 == link.place
        first = found.pop().first if is_next else link.place
        found.append(Gap(first, link))
    return found


def pruning(gaps: Sequence[Gap], lines: int) -> Deed:
    """Describe a pruning, so that the chain can be checked across it."""
    places = [[gap.first, gap.end.place, gap.end.chain] for gap in gaps]
    return Deed(PRUNED, None, "done", json.dumps({"lines": lines, "gaps": places}, separators=(",", ":")))


def gaps_in(entry: AuditEntry) -> list[Gap]:
    """Read which places a pruning lists as gone; a line in another form is ignored."""
    try:
        return [Gap(first, ChainLink(last, chain)) for first, last, chain in json.loads(entry.details_json or "{}")["gaps"]]
    except (ValueError, TypeError, KeyError):
        return []


class Break(NamedTuple):
    """A place where the chain does not hold."""

    place: int
    entry_id: int | None
    detail: str


def next_link(last: ChainLink, entry: AuditEntry) -> ChainLink:
    """Chain a line to those before it."""
    place = last.place + 1
    fields = {
        "place": place,
        "id": entry.id,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "principal": entry.principal,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "details": entry.details_json,
        "request_id": entry.request_id,
    }
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return ChainLink(place, hashlib.sha256(f"{last.chain}{text}".encode()).hexdigest())


def link_of(entry: AuditEntry) -> ChainLink:
    """Read the link that a chained line carries."""
    return ChainLink(entry.place or 0, entry.chain or "")


def breaks(last: ChainLink, entries: Iterable[AuditEntry], gaps: Mapping[int, Gap] = MappingProxyType({})) -> Iterator[Break]:
    """Check chained lines in their order; each is held to the digest stored before it, so each broken one is named.

    `gaps` has what prunings list as gone, by first place.
    """
    for entry in entries:
        link = link_of(entry)
        while last.place + 1 < link.place and (gap := gaps.get(last.place + 1)) is not None and gap.end.place < link.place:
            last = gap.end
        if link.place != last.place + 1:
            missing = f"places {last.place + 1} to {link.place - 1}"
            yield Break(last.place + 1, None, f"{missing} are gone: lines were deleted before line {entry.id}")
        elif next_link(last, entry) != link:
            yield Break(link.place, entry.id, f"line {entry.id} was edited or moved")
        last = link
