"""What strangers publish, read without trusting it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.packs.feed_site import rss
from windlass.core.feed import MAX_ENTRIES
from windlass.packs.feeds.document import FeedUnreadable, header_links, read_document

URL = "https://example.org/blog/feed.xml"
ATOM = """<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de">
<title>Straße</title><link href="/" rel="alternate"/><link rel="hub" href="https://hub.example/"/>
<link rel="self" href="feed.xml"/><id>urn:x</id><updated>2026-01-15T10:30:00Z</updated>
<entry><id>urn:2</id><title>Zwei</title><link href="2.html"/><updated>2026-01-15T11:30:00+01:00</updated>
<author><name>Ann</name></author>
<content type="html">&lt;p onclick="x()"&gt;hi&lt;script&gt;alert(1)&lt;/script&gt;&lt;/p&gt;</content></entry>
<entry><id>urn:1</id><title type="text">Eins</title><link href="javascript:alert(1)"/><summary>s</summary></entry>
</feed>"""


def test_atom_is_read_oldest_entry_first() -> None:
    document = read_document(ATOM.encode(), URL)
    assert (document.title, document.site_url, document.hub, document.topic) == (
        "Straße",
        "https://example.org/",
        "https://hub.example/",
        URL,
    )
    one, two = document.entries
    assert (one.guid, one.title, one.link, one.summary, one.published_at) == ("urn:1", "Eins", None, "s", None)
    assert (two.guid, two.author, two.link) == ("urn:2", "Ann", "https://example.org/blog/2.html")
    assert two.published_at == datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
    assert two.summary is not None
    assert "script" not in two.summary
    assert "onclick" not in two.summary


def test_an_id_does_not_depend_on_where_the_feed_came_from() -> None:
    there, here = (read_document(rss(1, 2), url).entries for url in (URL, "http://127.0.0.1/x"))
    assert [one.guid for one in there] == [one.guid for one in here] == ["1", "2"]


def test_rss_tells_how_often_it_changes() -> None:
    assert read_document(rss(1, extra="<ttl>180</ttl>"), URL).wait == timedelta(hours=3)


def test_an_entry_without_an_id_is_known_by_its_link_or_by_what_it_says() -> None:
    items = "<item><title>a</title><link>/a</link></item><item><title>b</title></item><item></item>"
    document = read_document(f'<rss version="2.0"><channel><title>t</title>{items}</channel></rss>'.encode(), URL)
    assert [one.guid for one in document.entries] == ["b", "/a"]


def test_everything_is_bounded() -> None:
    long = "x" * 100_000
    said = f"<title>{long}</title><description>{long}</description>"
    items = f"<item><guid>0{long}</guid>{said}</item><item><guid>1</guid></item>"
    document = read_document(f'<rss version="2.0"><channel><title>{long}</title>{items}</channel></rss>'.encode(), URL)
    first = document.entries[-1]
    assert len(document.title or "") <= 1_000
    assert len(first.guid) == len("sha256:") + 64
    assert (len(first.title or "") <= 1_000, len(first.summary or "") <= 10_000) == (True, True)
    many = read_document(rss(*range(MAX_ENTRIES + 100)), URL)
    assert len(many.entries) == MAX_ENTRIES
    assert many.entries[-1].guid == str(MAX_ENTRIES + 99)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"<html><p>no feed</p></html>",
        b"\x00\xff\xfe",
        b"<rss",
        b'{"version":"https://jsonfeed.org"}',
        b"<a/>" * 1000,
    ],
)
def test_garbage_is_refused_with_a_clear_text(body: bytes) -> None:
    with pytest.raises(FeedUnreadable, match="is neither RSS nor Atom"):
        read_document(body, URL)


def test_a_body_that_names_a_file_does_not_open_it(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(rss(1))
    for body in (str(path).encode(), path.as_uri().encode(), b"http://127.0.0.1:9/feed"):
        with pytest.raises(FeedUnreadable):
            read_document(body, URL)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", ["<!ENTITY", "<!entity"])
def test_entities_that_blow_up_or_read_files_are_refused(encoding: str, kind: str) -> None:
    levels = "".join(f'{kind} l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    for declared in (f'{kind} l0 "lol">{levels}', f'{kind} l11 SYSTEM "file:///etc/passwd">'):
        start = f'<?xml version="1.0"?><!DOCTYPE rss [<!-- <a> -->{declared}]>'
        with pytest.raises(FeedUnreadable, match="entities"):
            read_document(f'{start}<rss version="2.0"><channel><title>&l11;</title></channel></rss>'.encode(encoding), URL)


def test_a_document_type_or_a_text_about_entities_is_fine() -> None:
    start = '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://example.org/rss.dtd">'
    assert read_document(start.encode() + rss(1).removeprefix(b'<?xml version="1.0"?>'), URL).title == "News"
    assert read_document(rss(1, title="<![CDATA[how to use <!ENTITY]]>"), URL).entries


def test_texts_that_no_database_holds_are_mended() -> None:
    items = "<item><guid>1</guid><title>a&#0;b\ud800</title><pubDate>Mon, 99 Foo 99999 99:99</pubDate></item>"
    body = f'<rss version="2.0"><channel><title>t</title>{items}</channel></rss>'.encode("utf-8", "surrogatepass")
    [entry] = read_document(body, URL).entries
    assert "\0" not in (entry.title or "")
    assert (entry.title or "").encode()


@pytest.mark.parametrize(
    ("header", "links"),
    [
        (
            '<https://hub.example/>; rel="hub", </feed>; rel="self"',
            {"hub": "https://hub.example/", "self": "https://example.org/feed"},
        ),
        ('<https://hub.example/>; title="a,b"; rel="hub next"', {"hub": "https://hub.example/", "next": "https://hub.example/"}),
        ("<https://a.example/>; rel=hub, <https://b.example/>; rel=hub", {"hub": "https://a.example/"}),
        ("<javascript:x>; rel=hub", {}),
        ("nonsense", {}),
        ("", {}),
    ],
)
def test_links_in_the_headers_are_read(header: str, links: dict[str, str]) -> None:
    assert header_links(header, URL) == links
