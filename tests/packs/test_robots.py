"""What hosts ask of robots, in any form and size."""

from __future__ import annotations

import time

import pytest

from windlass.packs.crawl.robots import MAX_BYTES, read_rules

HOST = "https://example.org"


@pytest.mark.parametrize(
    ("text", "allowed", "forbidden"),
    [
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b", "/a"),
        ("user agent windlass\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", "/a"),
        ("User-agent: other\nDisallow: /b\nUser-agent: WINDLASS # us\nDisallow: /a", "/b", "/a"),
        ("User-agent: other\nUser-agent: windlass*\nDisallow: /a\nUser-agent: third\nDisallow: /b", "/b", "/a"),
        ("User-agent: windlassbot\nDisallow: /b\nUseragent:*\nDisallow: /*.a$", "/x.ab", "/x.a"),
    ],
)
def test_the_rules_of_our_name_or_else_of_everybody_hold(text: str, allowed: str, forbidden: str) -> None:
    rules = read_rules(text)
    assert (rules.allows(HOST + allowed), rules.allows(HOST + forbidden)) == (True, False)


HOSTILE = {
    "prefixes": "User-agent: *\n" + "".join(f"Disallow: /p{number}\n" for number in range(40_000)),
    "wildcards": "User-agent: *\n" + "".join(f"Disallow: /*{number}\n" for number in range(40_000)),
    "wildcards in one": "User-agent: *\n" + f"Disallow: /b{'*a' * 100}b\n" * 3_000,
    "names": "".join(f"User-agent: a{number}\n" for number in range(20_000)) + "Disallow: /x\n" * 15_000,
    "names with stars": "".join(f"User-agent: w{'*' * (number % 500)}{number}\n" for number in range(2_000))
    + "Allow: /\n" * 9_000,
    "spaces": "User-agent: *\nUser" + " " * 400_000 + "x",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_robots_txt_takes_long(kind: str) -> None:
    began = time.process_time()
    rules = read_rules(HOSTILE[kind][:MAX_BYTES])
    for number in range(100):
        rules.allows(f"{HOST}/{'a' * 1_900}{number}")
    assert time.process_time() - began < 3


def test_wildcards_that_are_too_many_forbid_more() -> None:
    many = "".join(f"Disallow: /x/*{number}\n" for number in range(2_000))
    rules = read_rules(
        f"User-agent: x\n{many}Disallow: /a/*\nUser-agent: *\nDisallow: /a/*b\nAllow: /a/*c\nDisallow: /d\nDisallow: /e*\n"
    )
    assert [rules.allows(f"{HOST}{path}") for path in ("/x/0", "/a/b", "/a/c", "/d", "/e", "/f")] == [
        *(True, False, False),
        *(False, False, True),
    ]
