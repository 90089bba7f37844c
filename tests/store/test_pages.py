"""Crawled pages: kept by source and address, found by the same words on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.builders import running
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.crawl import Address, CrawlState, Holder, Visit
from windlass.core.webpage import NewPage, index_words, new_page, search_words
from windlass.errors import InvalidInput, PageNotFound
from windlass.store import Store
from windlass.store.calls import pages
from windlass.store.calls.call import Call, Means, Steps
from windlass.testing import FakeClock


def a_page(url: str = "https://example.org/", title: str = "Title", text: str = "text", **said: Any) -> NewPage:
    given: dict[str, Any] = {
        "links": (),
        "body": text.encode(errors="replace"),
        "status": 200,
        "etag": None,
        "last_modified": None,
    }
    return new_page(url, title=title, text=text, **given | said)


async def keep(store: Store, *made: NewPage, source: str = "s") -> list[bool]:
    def steps(_: Means) -> Steps[list[bool]]:
        answers: list[bool] = []
        for one in made:
            answers += [(yield from pages.upsert(source, one))]
        return answers

    return await store.run(Call(steps))


async def found(store: Store, wanted: str, **said: Any) -> list[str]:
    return [one.url.rpartition("/")[2] for one in await store.pages.search(wanted, **said)]


async def test_a_page_is_kept_once_and_counts_only_when_it_changed(store: Store, clock: FakeClock) -> None:
    assert await keep(store, a_page(etag='"1"')) == [True]
    [first] = await store.pages.list()
    clock.advance(seconds=5)
    assert await keep(store, a_page(etag='"2"')) == [False]
    [same] = await store.pages.list()
    assert (same.id, same.etag, same.fetched_at, same.changed_at) == (first.id, '"2"', clock.now(), first.changed_at)
    clock.advance(seconds=5)
    assert await keep(store, a_page(text="other words")) == [True]
    changed = await store.pages.get(first.id)
    assert (changed.text, changed.changed_at, changed.created_at) == ("other words", clock.now(), first.created_at)
    assert (await found(store, "text"), await found(store, "other")) == ([], [""])


async def test_words_are_found_without_regard_to_case_accents_and_order(store: Store) -> None:
    await keep(
        store,
        a_page("https://e.org/a", "Café Crème", "The quick brown fox."),
        a_page("https://e.org/b", "Straße", "foo-bar foo_baz example.com 3.14 ﬁnd"),
        a_page("https://e.org/c", "数学", "Ünïcode Привет"),
    )
    for wanted, expected in {
        "CAFE": ["a"],
        "fox quick": ["a"],
        "fox foo": [],
        "bro*": ["a"],
        "bro": [],
        "strasse": ["b"],
        "baz bar": ["b"],
        "example": ["b"],
        "find 14": ["b"],
        "数学": ["c"],
        "数*": ["c"],
        "привет unicode": ["c"],
        "title": [],
    }.items():
        assert await found(store, wanted) == expected, wanted


ODD = [
    *("", " ", '"', '"a', "a\"b'c\\", "AND", "a AND", "NOT a", "a OR", "(", "a NEAR b", "*", "a**", "a:*", "-a", "^a", "{a b}:c"),
    *(
        "a & b",
        "!a",
        "a <-> b",
        "'",
        "\\",
        "a\0b",
        "\ud800",
        "%",
        "_",
        "words:a",
        "rank",
        "a+b",
        ";--",
        "😀",
        "\u0301",
        "x" * 200,
    ),
]


async def test_no_search_is_a_syntax_error(store: Store) -> None:
    await keep(store, a_page(text="something else"))
    for wanted in ODD:
        assert await found(store, wanted) == [], wanted


@given(wanted=st.text(max_size=40), text=st.text(max_size=60))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_looked_for_is_found_by_the_words_it_has(wanted: str, text: str) -> None:
    words = index_words(text).split(" ")
    assert all(word in words for word in search_words(text.replace("*", " ")))
    assert all(word.rstrip("*") for word in search_words(wanted))


async def test_pages_come_in_parts_in_the_order_they_were_found(store: Store) -> None:
    await keep(store, *(a_page(f"https://e.org/{n}", text=f"word n{n}") for n in range(5)))
    await keep(store, a_page("https://e.org/other", text="word"), source="t")
    first = await store.pages.search("word", limit=2)
    assert [one.url[-1] for one in first] == ["0", "1"]
    assert await found(store, "word", after=first[-1].id) == ["2", "3", "4", "other"]
    assert await found(store, "word", source_id="t") == ["other"]
    assert [one.url[-1] for one in await store.pages.list(source_id="s", after=first[-1].id, limit=2)] == ["2", "3"]
    assert len(await store.pages.list(limit=6)) == 6


async def test_lists_have_the_beginning_of_a_text_and_a_page_all_of_it(store: Store) -> None:
    await keep(store, a_page(text="ü" * 200_000))
    [listed] = await store.pages.list()
    assert (len(listed.text), len((await store.pages.get(listed.id)).text)) == (300, 100_000)


async def test_text_that_no_database_holds_is_mended(store: Store) -> None:
    await keep(store, a_page(title="a\0b", text="c\ud800d \ufdfa" + " ".join(f"\ufdfa{n}" for n in range(12_000))))
    [kept] = await store.pages.list()
    assert kept.title == "a\ufffdb"


async def test_an_unknown_page_is_not_found(store: Store) -> None:
    for page_id in (0, 1, -1, 2**63):
        with pytest.raises(PageNotFound, match=str(page_id)):
            await store.pages.get(page_id)


async def test_the_pages_of_a_source_are_deleted_together(store: Store) -> None:
    await keep(store, *(a_page(f"https://e.org/{n}", text="word") for n in range(230)))
    await keep(store, a_page("https://e.org/other", text="word"), source="t")
    assert await store.acting(Actor("ada")).pages.delete("s") == 230
    assert await store.pages.delete("s") == 0
    assert await found(store, "word") == ["other"]
    lines = await execute(store, "select action, target from windlass_audit order by id")
    assert {tuple(line) for line in lines} == {("delete pages", "source:s")}


async def test_bad_bounds_are_refused(store: Store) -> None:
    bad: list[dict[str, Any]] = [{"limit": 0}, {"limit": 501}, {"after": -1}, {"source_id": ""}, {"source_id": "\0"}]
    for said in bad:
        [name] = said
        for ask in (store.pages.list(**said), store.pages.search("x", **said)):
            with pytest.raises(InvalidInput, match=name):
                await ask
    with pytest.raises(InvalidInput, match="search"):
        await store.pages.search("x" * 201)


async def test_the_index_of_words_is_sound_after_all_kinds_of_changes(store: Store) -> None:
    if store.database.dialect != "sqlite":
        pytest.skip("PostgreSQL keeps its own index")
    held = await running(store)
    holder = Holder(held.id, held.token, "s")
    state = await store.crawls.begin(holder, "https://e.org/")
    address = Address(1, "https://e.org/", 0)
    for text in ("one two", "two three", "two three", "four"):
        visit = Visit(address, address.url, page=a_page(address.url, text=text))
        state = await store.crawls.record(holder, state, visit, max_pages=9)
    await execute(store, "insert into windlass_pages_words (windlass_pages_words, rank) values ('integrity-check', 1)")
    gone = Visit(address, address.url, is_gone=True, error="HTTP 410")
    left = await store.crawls.record(holder, state, gone, max_pages=9)
    await execute(store, "insert into windlass_pages_words (windlass_pages_words, rank) values ('integrity-check', 1)")
    assert (await store.pages.list(), left) == ([], CrawlState(address.url, 1, 4, 3, 1, notes=("https://e.org/: HTTP 410",)))
