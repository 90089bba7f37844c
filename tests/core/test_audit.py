"""The chain over the audit log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from windlass.core.audit import START, AuditEntry, ChainLink, breaks, link_of, next_link


def chained(length: int) -> list[AuditEntry]:
    entries, last = [], START
    for number in range(1, length + 1):
        entry = AuditEntry(
            number * 10, datetime(2026, 1, number, tzinfo=UTC), "ada", "cancel", "job:1", "done", '{"a":1}', None, None
        )
        last = next_link(last, entry)
        entries.append(replace(entry, place=last.place, chain=last.chain))
    return entries


def test_a_chain_that_nobody_touched_holds() -> None:
    entries = chained(5)
    assert list(breaks(START, entries)) == []
    assert list(breaks(link_of(entries[1]), entries[2:])) == []


def test_a_time_zone_does_not_change_a_link() -> None:
    [entry] = chained(1)
    elsewhere = replace(entry, at=entry.at.astimezone(timezone(timedelta(hours=5))))
    assert next_link(START, elsewhere) == link_of(entry)


def test_an_edited_line_is_named_alone() -> None:
    entries = chained(5)
    entries[2] = replace(entries[2], principal="eve")
    assert [(broken.place, broken.entry_id) for broken in breaks(START, entries)] == [(3, 30)]


def test_deleted_lines_are_named_by_their_place() -> None:
    entries = chained(5)
    del entries[1:3]
    [broken] = breaks(START, entries)
    assert (broken.place, broken.entry_id) == (2, None)
    assert "places 2 to 3" in broken.detail


def test_lines_that_changed_places_are_named() -> None:
    entries = chained(4)
    second, third = entries[1:3]
    entries[1:3] = [replace(third, place=2, chain=second.chain), replace(second, place=3, chain=third.chain)]
    assert [broken.entry_id for broken in breaks(START, entries)] == [30, 20]


def test_every_field_counts() -> None:
    [entry] = chained(1)
    changes = (
        {"id": 11},
        {"at": entry.at + timedelta(microseconds=1)},
        {"principal": "eve"},
        {"action": "retry"},
        {"target": None},
        {"outcome": "refused"},
        {"details_json": '{"a": 1}'},
        {"request_id": "r"},
    )
    links = {next_link(START, replace(entry, **change)) for change in changes}
    assert len(links) == len(changes)
    assert link_of(entry) not in links
    assert next_link(ChainLink(1, ""), entry) != link_of(entry)
