"""Sources: what is crawled, kept by id."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.raw import execute
from tests.support.stores import at_time
from windlass.core.audit import Actor
from windlass.core.source import NewSource
from windlass.errors import InvalidInput, SourceNotFound
from windlass.store import Store
from windlass.testing import FakeClock


def a_source(source_id: str = "news", **said: Any) -> NewSource:
    given: dict[str, Any] = {"name": "News", "url": "https://example.org/feed"}
    return NewSource(id=source_id, **given | said)


async def test_a_source_is_kept_and_changed_under_its_id(store: Store, clock: FakeClock) -> None:
    made = await store.sources.upsert(a_source(metadata={"lang": "de"}))
    assert (made.created_at, made.updated_at, made.last_run_at) == (clock.now(), clock.now(), None)
    assert await store.sources.get("news") == made
    clock.advance(seconds=1)
    changed = await store.sources.upsert(a_source(name="Other", url="http://example.org:8080/"))
    assert (changed.name, changed.url, changed.metadata) == ("Other", "http://example.org:8080/", {"lang": "de"})
    assert (changed.created_at, changed.updated_at) == (made.created_at, clock.now())
    assert await store.sources.get("news") == changed


async def test_an_unknown_source_is_not_found(store: Store) -> None:
    for call in (store.sources.get("x"), store.sources.touch("x"), store.sources.delete("x")):
        with pytest.raises(SourceNotFound, match="'x'"):
            await call


async def test_a_deleted_source_is_gone(store: Store) -> None:
    made = await store.sources.upsert(a_source())
    assert await store.sources.delete("news") == made
    assert await store.sources.list() == []


async def test_sources_are_read_page_by_page(store: Store) -> None:
    for place in (3, 1, 4, 2, 5):
        await store.sources.upsert(a_source(f"s{place}"))
    first = await store.sources.list(limit=2)
    rest = await store.sources.list(after=first[-1].id)
    assert [one.id for one in [*first, *rest]] == ["s1", "s2", "s3", "s4", "s5"]
    for limit in (0, 501):
        with pytest.raises(InvalidInput, match="limit"):
            await store.sources.list(limit=limit)


async def test_stale_sources_are_those_that_never_ran_and_then_the_longest_ago(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    for place in range(6):
        await store.sources.upsert(a_source(f"s{place}"))
    for place in (3, 1, 2):
        clock.advance(seconds=10)
        assert (await store.sources.touch(f"s{place}")).last_run_at == clock.now()
    before = start + timedelta(seconds=25)
    assert [one.id for one in await store.sources.stale(before)] == ["s0", "s4", "s5", "s3", "s1"]
    assert [one.id for one in await store.sources.stale(before, limit=4)] == ["s0", "s4", "s5", "s3"]


async def test_a_source_never_ran_earlier_than_it_did(store: Store, clock: FakeClock) -> None:
    await store.sources.upsert(a_source())
    late = await at_time(store, clock.now() + timedelta(hours=1)).sources.touch("news")
    assert (await store.sources.touch("news")).last_run_at == late.last_run_at


async def test_racing_upserts_of_one_id_make_one_source(store: Store) -> None:
    made = await asyncio.gather(*(store.sources.upsert(a_source(name=f"n{n}")) for n in range(10)))
    [kept] = await store.sources.list()
    assert kept in made


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("id", {"source_id": ""}),
        ("id", {"source_id": "x" * 256}),
        ("id", {"source_id": "a\nb"}),
        ("name", {"name": ""}),
        ("name", {"name": "x" * 256}),
        ("name", {"name": "tab\there"}),
        ("name", {"name": "\x7f"}),
        ("name", {"name": "\0"}),
        ("name", {"name": "\ud800"}),
        ("url", {"url": "ftp://example.org"}),
        ("url", {"url": "example.org"}),
        ("url", {"url": "http://"}),
        ("url", {"url": "http://:80/"}),
        ("url", {"url": "http://example.org:99999/"}),
        ("url", {"url": "http://[::1/"}),
        ("url", {"url": "http://a b/"}),
        ("url", {"url": "javascript:alert(1)"}),
        ("url", {"url": "http://example.org/" + "x" * 2048}),
        ("url", {"url": None}),
        ("metadata", {"metadata": []}),
        ("metadata", {"metadata": {"a": float("inf")}}),
    ],
)
def test_a_bad_source_is_refused_by_name(field: str, said: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        a_source(**said)
    assert refused.value.field == field


def test_names_of_255_characters_in_any_script_are_fine() -> None:
    assert a_source("ü" * 255, name="数" * 255, url="HTTPS://user@example.org/a?b#c").name == "数" * 255


async def test_changes_leave_a_line_in_the_audit_log(store: Store) -> None:
    acting = store.acting(Actor("ada"))
    await acting.sources.upsert(a_source())
    await acting.sources.touch("news")
    await acting.sources.delete("news")
    with pytest.raises(SourceNotFound):
        await acting.sources.delete("news")
    found = await execute(store, "select principal, action, target from windlass_audit order by id")
    assert [tuple(row) for row in found] == [("ada", "upsert source", "source:news"), ("ada", "delete source", "source:news")]


@pytest.mark.parametrize("after", ["a\0", "\ud800"])
async def test_a_page_after_what_no_database_holds_is_refused(store: Store, after: str) -> None:
    with pytest.raises(InvalidInput):
        await store.sources.list(after=after)
