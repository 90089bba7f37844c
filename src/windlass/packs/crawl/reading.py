"""What an answer brings: the page to keep and where to go on from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from windlass.core.source import MAX_URL
from windlass.core.webpage import MAX_LINKS, NewPage, new_page
from windlass.packs.crawl.charset import decode_page
from windlass.packs.crawl.html import HtmlDocument, read_html, robot_words
from windlass.packs.outgoing import Answer, UrlRefused
from windlass.packs.outgoing.url import WebUrl, join_url

_HTML = frozenset({"text/html", "application/xhtml+xml"})


class Reading(NamedTuple):
    """A page, unless it is none or does not want to be kept, and its links within the site."""

    page: NewPage | None = None
    links: tuple[str, ...] = ()


def read_answer(url: WebUrl, answer: Answer, allows: Callable[[str], bool]) -> Reading:
    """Read an answer; takes long for a large page, so it belongs into a thread."""
    content_type = answer.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() not in _HTML:
        return Reading()
    found = read_html(decode_page(answer.body, content_type))
    wishes = found.robots | robot_words(answer.headers.get("x-robots-tag", ""))
    links = () if "nofollow" in wishes else site_links(url, _base(url, found), found.links)
    page = None if "noindex" in wishes else _page(url, answer, found, links)
    return Reading(page, tuple(filter(allows, links)))


def site_links(url: WebUrl, base: WebUrl, links: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses that links of a page lead to, in one form each; those of other hosts are left out."""
    found: dict[str, None] = {}
    for link in links:
        try:
            target = join_url(base, link)
        except UrlRefused:
            continue
        if target.authority == url.authority and len(str(target)) <= MAX_URL:
            found[str(target)] = None
        if len(found) == MAX_LINKS:
            break
    return tuple(found)


def _base(url: WebUrl, found: HtmlDocument) -> WebUrl:
    try:
        return url if found.base is None else join_url(url, found.base)
    except UrlRefused:
        return url


def _page(url: WebUrl, answer: Answer, found: HtmlDocument, links: tuple[str, ...]) -> NewPage:
    return new_page(
        str(url),
        title=found.title,
        text=found.text,
        links=links,
        body=answer.body,
        status=answer.status,
        etag=answer.validator("etag"),
        last_modified=answer.validator("last-modified"),
    )
