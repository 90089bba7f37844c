"""HTML as it is found: broken, huge, hostile, in any alphabet."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.packs.crawl.charset import decode_page
from windlass.packs.crawl.html import read_html
from windlass.packs.crawl.reading import read_answer
from windlass.packs.outgoing import Answer
from windlass.packs.outgoing.url import parse_url

BROKEN = {
    "<title>A &amp; B</title><p>x<p>y": ("A & B", "x y"),
    "w<b>o</b>rd<br>next": ("", "word next"),
    "a <script>var x = '<p>no</p>';</script> b": ("", "a b"),
    "a <STYLE>p {}</style > b": ("", "a b"),
    "a <!-- <p>no --> b": ("", "a b"),
    "a <!-- never closed <p>no": ("", "a"),
    "1 < 2 & 3 > 2 <3": ("", "1 < 2 & 3 > 2 <3"),
    "<p title='>'>x</p>": ("", "x"),
    '<p title="never closed>x</p> y': ("", "x y"),
    "<title>never closed <p>x": ("", "never closed x"),
    "<title>one</title><svg><title>two</title></svg>": ("one", ""),
    "<textarea><a href=/no>x</a></textarea>": ("", "<a href=/no>x</a>".replace("<a href=/no>x</a>", "")),
    "</p></p><//p></ p>x": ("", "<//p></ p>x"),
    "<?php echo 1 ?>x<!doctype html>": ("", "x"),
    "": ("", ""),
    "<": ("", "<"),
    "<a": ("", ""),
    f"<title>&#{'9' * 5_000};</title>x&#{'0' * 5_000}1y&#065;&#x{'f' * 5_000};": ("\ufffd", "x\ufffdyA\ufffd"),
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken_html_is_read_as_browsers_do(text: str) -> None:
    found = read_html(text)
    assert (found.title, found.text) == BROKEN[text]


def test_links_are_found_in_every_form() -> None:
    text = """<a href="/1">x</a><A HREF='/2'>x</A><a class=x href=/3>x<area href=" /4 "><a href=/1><a href="/5?a=1&amp;b=2">
    <a name=x><a href><a href=""><a rel="ugc nofollow" href=/no><link href=/no.css><base href="/b/"><base href="/c/">"""
    found = read_html(text)
    assert (found.links, found.base) == (("/1", "/2", "/3", "/4", "/5?a=1&b=2"), "/b/")


HOSTILE = [
    "<!--",
    "<",
    "<a ",
    '<a b="',
    "<a b='\"",
    "&a",
    "<!",
    "</a",
    "<script>",
    "<title>",
    "<a x =",
    "<xmp><title>",
    "&#",
    "&#" + "9" * 99,
    "<a\0",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_no_text_takes_long(part: str) -> None:
    began = time.process_time()
    read_html(part * (200_000 // len(part)))
    # A quadratic reader takes minutes.
    assert time.process_time() - began < 5


@given(st.text(alphabet=st.sampled_from("<>/!-\"'= abtscript&;#x\0é"), max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_read(text: str) -> None:
    read_html(text)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("ü".encode(), "text/html", "ü"),
        ("ü".encode("latin-1"), "text/html; charset=ISO-8859-1", "ü"),
        (b"\x80", "text/html; charset=latin1", "€"),
        (b'<meta charset="koi8-r">' + "да".encode("koi8-r"), "text/html", '<meta charset="koi8-r">да'),
        ("日本".encode("shift_jis"), 'text/html;charset="Shift_JIS"', "日本"),
        ("ü".encode("utf-16"), "text/html; charset=utf-8", "ü"),
        (b"\xff", "text/html; charset=nonsense", "\ufffd"),
        (b"abc", "text/html; charset=punycode", "abc"),
        (b"abc", "text/html; charset=zlib", "abc"),
        (b"\\x41", "text/html; charset=unicode_escape", "\\x41"),
    ],
)
def test_bytes_are_read_in_the_alphabet_they_say(body: bytes, content_type: str, text: str) -> None:
    assert decode_page(body, content_type) == text


def test_a_page_brings_links_of_its_site_in_one_form_each() -> None:
    url = parse_url("http://Example.org:80/a/b?q#f")
    links = "".join(
        f'<a href="{link}">'
        for link in (
            "c",
            "./c#x",
            "http://EXAMPLE.org/a/c",
            "/d e",
            "../../..",
            "https://example.org/s",
            "http://example.org:81/",
            "?x=ü",
        )
    )
    answer = Answer(200, str(url), {"content-type": "text/html", "etag": "ü", "last-modified": "now"}, links.encode())
    found = read_answer(url, answer, lambda link: "/s" not in link)
    assert found.links == (
        "http://example.org/a/c",
        "http://example.org/d%20e",
        "http://example.org/",
        "http://example.org/a/b?x=%C3%BC",
    )
    assert found.page is not None
    assert (found.page.url, found.page.etag, found.page.last_modified) == ("http://example.org/a/b?q", None, "now")
    assert len(found.page.links) == 5


def test_what_does_not_want_to_be_kept_is_not() -> None:
    url = parse_url("http://example.org/")
    for headers, body in (
        ({"x-robots-tag": "noindex"}, b"<a href=/x>"),
        ({}, b"<meta name=ROBOTS content='none'><a href=/x>"),
        ({}, b"<a href=/x><meta content=nofollow name=windlass>"),
        ({"content-type": "image/png"}, b"<a href=/x>"),
    ):
        found = read_answer(url, Answer(200, str(url), {"content-type": "text/html; x", **headers}, body), lambda _: True)
        assert (found.page is None, bool(found.links)) == ("nofollow" not in body.decode(), "noindex" in headers.values())
